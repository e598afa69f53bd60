# Dry starts: shards with logs and times merge to what one run would say; of two runs with one cache each point is started once.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp -r ../fixtures/models/small-llama "$work/m"; mkdir -p "$work/e/bin"
cat >"$work/e/bin/python" <<'END'
#!/bin/sh
[ "$1" = -c ] && { echo "cuda 12.8"; echo "engine 0.32.0"; exit 0; }
exec sh "$@"
END
cat >"$work/e/bin/vllm" <<END
#!$work/e/bin/python
echo x >>"$work/starts"
sleep 0.4
echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 22.00 GiB of which 1.00 GiB is free."; exit 1
END
chmod +x "$work/e/bin/vllm" "$work/e/bin/python"
cat >"$work/m.yaml" <<END
mode: dryrun
models: [./m]
gpus: [4090, L4]
flags: ["", --max-num-seqs 8]
versions: [0.32.0]
engines: {0.32.0: $work/e}
END
run() { "$OOMSIGHT" matrix --offline --quiet "$work/m.yaml" --jobs 1 --cache "$work/cache" --format md; }
run >"$work/a" 2>&1 & first=$!
run >"$work/b" 2>&1
wait $first
cmp "$work/a" "$work/b" && echo "both say the same"; wc -l <"$work/starts"; wc -l <"$work/cache/matrix.ndjson"
echo "-- a claim ends with its process"
rm -r "$work/cache" "$work/starts"
"$OOMSIGHT" matrix --offline --quiet "$work/m.yaml" --jobs 1 --cache "$work/cache" >/dev/null 2>&1 & first=$!
while [ ! -s "$work/starts" ]; do sleep 0.05; done
kill -9 $first; wait $first 2>/dev/null; run >/dev/null 2>&1; wc -l <"$work/starts"
echo "-- shards"
for i in 1 2 3; do "$OOMSIGHT" matrix --offline --quiet --no-cache --shard $i/3 "$work/m.yaml" >"$work/part-$i"; echo "exit $?"; done
"$OOMSIGHT" matrix --merge --format md "$work/m.yaml" "$work"/part-* >"$work/merged"; echo "exit $?"
cmp "$work/merged" "$work/a" && echo "as in one run"
