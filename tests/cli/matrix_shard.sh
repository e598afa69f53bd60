# Shards of a matrix, merged again: equal to one run in every byte, whatever the format; what is missing, torn or of another matrix is named.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd ../fixtures || exit 9
file=matrix/fleet.yaml
matrix() { "$OOMSIGHT" matrix --offline --models models "$@"; }
shards() { n=$1; shift; for i in $(seq "$n"); do matrix --shard "$i/$n" "$@" $file >"$work/part-$i" || echo "shard $i: exit $?"; done; }
for n in 1 2 5 20; do
    for diff in "" "--diff 0.10.2 0.32.0 --moved 1"; do
        rm -f "$work"/part-*; shards $n $diff
        for format in text json md html junit; do
            matrix $diff --format $format --points "$work/points" $file >"$work/serial"; was=$?
            matrix --merge $diff --format $format --points "$work/merged-points" $file "$work"/part-* >"$work/merged"; is=$?
            cmp "$work/serial" "$work/merged" && cmp "$work/points" "$work/merged-points" && [ $was = $is ] && echo "$n shards, $format ${diff:+compared }equal: exit $is"
        done
    done
done | grep -c equal
rm -f "$work"/part-*; shards 3
echo "-- a shard is missing, one is torn, one is there twice"
try() { matrix --merge $file "$@" >"$work/out" 2>"$work/err"; echo "exit $?"; sed "s#$work#WORK#g" "$work/err"; head -n 1 "$work/out"; }
try "$work/part-1" "$work/part-2"
head -c -20 "$work/part-3" >"$work/torn"; try "$work/part-1" "$work/part-2" "$work/torn"
try "$work/torn" "$work"/part-*
echo "-- of another matrix, of none"
sed 's/small-llama/large-llama/' "$work/part-1" >"$work/other"; try "$work/other"
sed 's/"point": [0-9]*/"point": 4711/' "$work/part-1" >"$work/far"; try "$work/far"
echo '{"no": "point"}' >"$work/none"; try "$work/part-1" "$work/none"
try "$work/no-such-file"
echo "-- usage"
try; matrix --merge --shard 1/2 $file "$work/part-1" 2>&1; matrix $file "$work/part-1" 2>&1
for shard in 0/3 4/3 1 1/2/3 -1/3 1/0 x/y; do matrix --shard $shard $file 2>&1 || echo "exit $?"; done
