#!/bin/sh
# Fuzz one reader: fuzz.sh BUILD TARGET [RUNS]. BUILD has -Dfuzz=true. FUZZ_SECONDS ends it by time instead; FUZZ_CORPUS
# keeps what is found in a folder. A finding is left in the folder the command is run from, as crash-*, and ends with 1 (libFuzzer's own 77
# would read as skipped). FUZZ_TIMEOUT seconds for one input. FUZZ_SEED makes a run repeatable.
set -eu
build=$1; target=$2; runs=${3:-100000}
cd "$(dirname "$0")/.."
corpus=${FUZZ_CORPUS:-$(mktemp -d)}
mkdir -p "$corpus"
set -- -max_len=4096 "-timeout=${FUZZ_TIMEOUT:-10}" -error_exitcode=1 -rss_limit_mb=2048 -print_final_stats=1 "-seed=${FUZZ_SEED:-0}"
if [ -f "tests/fuzz/$target.dict" ]; then set -- "$@" "-dict=tests/fuzz/$target.dict"; fi
if [ -n "${FUZZ_SECONDS:-}" ]; then set -- "$@" "-max_total_time=$FUZZ_SECONDS"; else set -- "$@" "-runs=$runs"; fi
exec "$build/tests/fuzz/fuzz_$target" "$@" "$corpus" "tests/fuzz/corpus/$target"
