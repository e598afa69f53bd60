# An engine that is a script: its first start compiles, its second finds what the first kept. The report says which it was.
work=$(mktemp -d)
cat >"$work/engine" <<END
if [ -e "$work/cache" ]; then echo "Directly load the compiled graph(s) for dynamic shape from the cache, took 0.5 s"
else touch "$work/cache"; echo "Compiling a graph for dynamic shape takes 9.0 s"; fi
END
seen() { "$OOMSIGHT" dryrun --gpu 4090 --cuda 13 --quiet --json "$@" -- sh "$work/engine" 2>"$work/err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["compile_cache"])'; cat "$work/err"; }
seen
seen
rm "$work/cache"
echo "-- twice"
seen --warm
rm "$work/cache"
"$OOMSIGHT" dryrun --gpu 4090 --cuda 13 --quiet --warm --output "$work/report" -- sh "$work/engine"; grep 'compile cache' "$work/report"
rm "$work/cache"
"$OOMSIGHT" dryrun --gpu 4090 --cuda 13 --quiet -- sh "$work/engine" | grep 'compile cache'
"$OOMSIGHT" dryrun --gpu 4090 --cuda 13 --quiet --json -- true | python3 -c 'import json, sys; print(json.load(sys.stdin)["compile_cache"])'
rm -rf "$work"
