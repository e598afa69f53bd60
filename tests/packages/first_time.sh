#!/bin/sh
# From the README to an answer, as somebody new would: first_time.sh WHEEL. A fresh environment that has nothing, an empty home, no network; then
# the commands that the pages print, each with its seconds. Fails when an answer is not there or all of it takes more than a minute.
set -u
wheel=$(realpath "$1"); root=$(cd "$(dirname "$0")/../.." && pwd); work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
failed=0; count=0; total=0
now() { python3 -c 'import time; print(time.time())'; }
# step EXIT WORDS-TO-FIND COMMAND
step() {
    begun=$(now)
    (cd "$root" && env -i HOME="$work/home" PATH="$work/env/bin:/usr/bin:/bin" sh -c "$3") >"$work/out" 2>&1
    got=$?; count=$((count + 1)); shown=$(echo "$3" | sed "s|$wheel|$(basename "$wheel")|")
    total=$(python3 -c "import time; s = time.time() - $begun; print('%.2f' % ($total + s)); open('$work/took', 'w').write('%.2f' % s)")
    echo "$count. $(cat "$work/took") s  $shown"
    [ "$got" -eq "$1" ] && { [ -z "$2" ] || grep -q "$2" "$work/out"; } || { echo "FAIL exit $got"; head -n 12 "$work/out"; failed=1; }
}
mkdir "$work/home"
begun=$(now); python3 -m venv "$work/env" || exit 77
echo "0. $(python3 -c "import time; print('%.2f' % (time.time() - $begun))") s  python3 -m venv (not counted: most have one)"
step 0 '' "pip install -q --disable-pip-version-check --no-index $wheel"
# The first plan of the README and the first log of the tutorial, as they stand there.
plan=$(sed -n 's/^\(oomsight plan .*[^ ]\)  *#.*$/\1/p' "$root/README.md" | head -n 1)
explain=$(sed -n 's/^\$ \(oomsight explain .*\)$/\1/p' "$root/docs/tutorials/my-engine-died.md" | head -n 1)
[ -n "$plan" ] && [ -n "$explain" ] || { echo "FAIL no command in the pages"; exit 1; }
step 1 'Suggested command' "$plan"
echo "   $total s from nothing to the first answer: $count commands"
step 1 'max_model_len' "$explain"
step 1 'max_model_len' "cat ${explain##* } | oomsight explain"
step 0 'True\|False' "python -c \"import oomsight; print(bool(oomsight.plan('vllm serve Qwen/Qwen3-8B', gpu='4090')))\""
python3 -c "raise SystemExit($total > 60)" || { echo "FAIL $total s"; failed=1; }
exit $failed
