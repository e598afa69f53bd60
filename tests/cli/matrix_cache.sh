# Dry starts by a pool: an engine that is a script, whose first start is killed; then everything is found in the cache.
work=$(mktemp -d); cp -r ../fixtures/models/small-llama "$work/m"; mkdir -p "$work/e/bin" "$work/logs"
cat >"$work/e/bin/python" <<'END'
#!/bin/sh
[ "$1" = -c ] && { echo "cuda 12.8"; echo "engine 0.32.0"; exit 0; }
exec sh "$@"
END
cat >"$work/e/bin/vllm" <<END
#!$work/e/bin/python
echo x >>"$work/starts"
[ "\$(wc -l <"$work/starts")" -eq 1 ] && kill -9 \$PPID && exec sleep 5
echo "ready or not"
case "\$*" in *--seed\ 9*) kill -TERM "\$(cat $work/pid)"; sleep 60 ;; esac
case "\$*" in *--seed*) echo "ValueError: no such seed"; exit 7 ;; esac
END
chmod +x "$work/e/bin/vllm" "$work/e/bin/python"
cat >"$work/m.yaml" <<END
mode: dryrun
models: [./m]
gpus: [4090, L4]
flags: ["", --seed 1]
versions: [0.32.0]
exclude: [{gpu: L4, flags: --seed*}]
engines: {0.32.0: $work/e}
END
try() { "$OOMSIGHT" matrix --offline "$work/m.yaml" --jobs 1 --format md "$@" 2>"$work/err"; echo "exit $?"; sed -E "s#$work#WORK#g; s/\([0-9]+ s\)/(N s)/" "$work/err"; }
try --cache "$work/cache" --logs "$work/logs"; wc -l <"$work/starts"; ls "$work/logs"
echo "-- what was definite is kept, and the torn line of a killed process is not read"
printf '{"schema": "oomsight.matrix/1", "key": "' >>"$work/cache/matrix.ndjson"
try --cache "$work/cache"; wc -l <"$work/starts"
echo "-- another flag is another key, another content of the model as well"
sed -i 's/^flags:.*/flags: [--max-num-seqs 4]/' "$work/m.yaml"; try --cache "$work/cache" --quiet >/dev/null; wc -l <"$work/starts"
echo ' ' >>"$work/m/config.json"; try --cache "$work/cache" --quiet >/dev/null; wc -l <"$work/starts"
try --cache "$work/cache" --quiet >/dev/null; wc -l <"$work/starts"
echo "-- the engine of another version is no answer"
sed -i 's/0.32.0/0.19.1/' "$work/m.yaml"; try --no-cache
try --cache /proc/no
echo "-- interrupted: what is finished and what is kept are two numbers"
sed -i 's/^gpus:.*/gpus: [4090]/; s/^flags:.*/flags: [--max-num-seqs 8, --seed 1, --seed 9]/; s/0.19.1/0.32.0/g' "$work/m.yaml"
sh -c 'echo $$ >"$0/pid"; exec "$@"' "$work" "$OOMSIGHT" matrix --offline "$work/m.yaml" --jobs 1 --quiet --format md --cache "$work/cache" 2>&1 | grep interrupted
rm -rf "$work"
