#!/bin/sh
# Fuzz one target: fuzz.sh BUILD TARGET [RUNS]. BUILD has -Dfuzz=true. FUZZ_SECONDS ends it by time instead; FUZZ_CORPUS
# keeps what is found in a folder. A finding is left in the folder the command is run from, as crash-*, and ends with 1 (libFuzzer's own 77
# would read as skipped). FUZZ_TIMEOUT seconds for one input. FUZZ_SEED makes a run repeatable. FUZZ_MORE: a folder of more inputs to begin
# with. Inputs may become as long as real files are: configs and logs 64 KB, memory snapshots 256 KB (FUZZ_MAX_LEN).
set -eu
build=$1; target=$2; runs=${3:-100000}
cd "$(dirname "$0")/.."
corpus=${FUZZ_CORPUS:-$(mktemp -d)}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python3 tests/fuzz/seeds.py "$made" >/dev/null
mkdir -p "$corpus" "$made/$target"
case $target in snapshot | whatif) longest=262144 ;; *) longest=65536 ;; esac
set -- "-max_len=${FUZZ_MAX_LEN:-$longest}" "-timeout=${FUZZ_TIMEOUT:-20}" -error_exitcode=1 -rss_limit_mb=2048 -print_final_stats=1 "-seed=${FUZZ_SEED:-0}"
if [ -f "tests/fuzz/$target.dict" ]; then set -- "$@" "-dict=tests/fuzz/$target.dict"; fi
if [ -n "${FUZZ_SECONDS:-}" ]; then set -- "$@" "-max_total_time=$FUZZ_SECONDS"; else set -- "$@" "-runs=$runs"; fi
"$build/tests/fuzz/fuzz_$target" "$@" "$corpus" "tests/fuzz/corpus/$target" "$made/$target" ${FUZZ_MORE:+"$FUZZ_MORE"}
