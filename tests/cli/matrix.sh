# One file, every format; figures of plans are others' business and are cut off where they would be copied.
cd ../fixtures || exit
file=matrix/fleet.yaml
try() { out=$("$OOMSIGHT" matrix --offline --models models "$@"); code=$?; }
shape() { sed -E 's/[0-9]{1,3}(,[0-9]{3})+/N/g; s/ +$//'; }
try $file; echo "$out" | shape; echo "exit $code"
try $file --format md; echo "$out" | shape | head -n 6; echo "exit $code"
try $file --diff 0.10.2 0.32.0 --moved 1; echo "$out" | head -n 2; echo "exit $code"
try $file --format junit; echo "$out" | python3 -c 'import sys, xml.dom.minidom as x; d = x.parse(sys.stdin)
for s in d.getElementsByTagName("testsuite"): print(*(s.getAttribute(a) for a in ("name", "tests", "failures", "errors")), len(s.getElementsByTagName("testcase")))'; echo "exit $code"
try $file --json; echo "$out" | python3 ../../tools/check_schema.py ../../data/schema/matrix.schema.json && echo "the schema holds for every line"
echo "$out" | wc -l
try $file --json --diff 0.10.2 0.32.0; echo "$out" | python3 ../../tools/check_schema.py ../../data/schema/matrix-summary.schema.json && echo "the schema holds"
try $file --format html; echo "$out" | grep -c '<script type="application/json"'
points=$(mktemp); try $file --format md --points "$points"; wc -l <"$points"; rm -f "$points"
echo "-- an upgrade that breaks: by a default, and by a flag that is gone"
try ../../examples/matrix/fleet.yaml --diff 0.10.2 0.32.0; echo "$out" | shape | sed -n '1,/moves/p'; echo "exit $code"
try ../../examples/matrix/fleet.yaml --diff 0.10.2 0.32.0 --format junit; echo "$out" | grep -c '<failure'
