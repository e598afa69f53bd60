#!/bin/sh
# check_abi.sh BUILD [--write]: the library beside the committed description of its interface (packaging/abi/oomsight.abi, by abidw of
# abigail-tools). A function that is gone or takes something else fails; one that is new, or a struct that grew at its end, does not,
# and --write takes it in. Without the tools: 77, skipped.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
library=$(ls "$1"/src/liboomsight.so.[0-9]* 2>/dev/null | head -1); dump=$root/packaging/abi/oomsight.abi
command -v abidiff >/dev/null 2>&1 || { echo "abigail-tools are not installed"; exit 77; }
[ -n "$library" ] || { echo "no shared library in $1"; exit 77; }
if [ "${2:-}" = --write ]; then
    mkdir -p "$(dirname "$dump")"
    exec abidw --exported-interfaces-only --header-file "$root/include/oomsight/oomsight.h" --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed \
        --no-parameter-names --type-id-style hash --out-file "$dump" "$library"
fi
[ -f "$dump" ] || { echo "no description to compare with"; exit 1; }
abidiff --exported-interfaces-only --header-file2 "$root/include/oomsight/oomsight.h" --drop-private-types --no-show-locs "$dump" "$library"
code=$?
[ $((code & 3)) -eq 0 ] || exit 1 # the tool itself failed
[ $((code & 8)) -eq 0 ] || { echo "an older program would break"; exit 1; }
exit 0
