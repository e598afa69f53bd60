#!/bin/sh
# check_abi.sh BUILD [--write]: the library beside the committed description of its interface (packaging/abi/oomsight.abi, by abidw of
# abigail-tools). A function that is gone, another parameter or return type, a member or an enumerator that moved: it fails. What is new
# passes: a function, an enumerator, a field at the end of a struct that begins with its size (tools/abi_trim.py); --write takes it in.
# DUMP=FILE, HEADERS=DIR: another description, other headers (the test of this script). Without the tools: 77, skipped.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
library=$(ls "$1"/src/liboomsight.so.[0-9]* 2>/dev/null | head -1)
dump=${DUMP:-$root/packaging/abi/oomsight.abi}; headers=${HEADERS:-$root/include/oomsight}
command -v abidiff >/dev/null 2>&1 || { echo "abigail-tools are not installed"; exit 77; }
[ -n "$library" ] || { echo "no shared library in $1"; exit 77; }
# Without members and enumerators the comparison sees names of functions alone.
whole() { [ "$(grep -c '<data-member' "$1")" -ge 120 ] && [ "$(grep -c '<enumerator' "$1")" -ge 20 ] || { echo "$1 has too few members or enumerators: no description"; return 1; }; }
describe() {
    abidw --exported-interfaces-only --headers-dir "$headers" --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed \
        --no-parameter-names --type-id-style hash --out-file "$1" "$library"
}
if [ "${2:-}" = --write ]; then
    mkdir -p "$(dirname "$dump")"
    describe "$dump" && whole "$dump"
    exit
fi
[ -f "$dump" ] || { echo "no description to compare with"; exit 1; }
now=$(mktemp -d); trap 'rm -rf "$now"' EXIT
describe "$now/now.abi" && whole "$now/now.abi" && whole "$dump" && python3 "$root/tools/abi_trim.py" "$dump" "$now/now.abi" "$now/trimmed.abi" || exit 1
abidiff --no-added-syms --no-show-locs "$dump" "$now/trimmed.abi"
code=$?
[ $((code & 3)) -eq 0 ] || { echo "abidiff itself failed: $code"; exit 1; }
[ $((code & 12)) -eq 0 ] || { echo "an older program would break, or was compiled for something else"; exit 1; }
exit 0
