#!/bin/sh
# Golden reports: tests/golden/CASE/command has the words behind `oomsight`; report.txt and report.json are what it
# printed when last reviewed. golden.sh BUILD_DIR [--rewrite]
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
binary=$(realpath "$1/cli/oomsight"); rewrite=${2:-}
cd "$root/tests/golden" || exit 1
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
passed=0; failed=0
for case in */; do
    case=${case%/}; [ -f "$case/command" ] || continue
    command=$(cat "$case/command")
    eval "NO_COLOR=1 '$binary' $command" >"$work/report.txt" 2>&1
    eval "NO_COLOR=1 '$binary' ${command%% *} --json ${command#* }" >"$work/report.json" 2>&1
    for report in report.txt report.json; do
        if [ "$rewrite" = --rewrite ]; then
            cp "$work/$report" "$case/$report"
        elif diff -u "$case/$report" "$work/$report"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    done
done
echo "golden: $passed equal, $failed differ"
[ "$failed" -eq 0 ]
