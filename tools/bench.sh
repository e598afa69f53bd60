#!/bin/sh
# Every bench of the build directory: bench.sh BUILD_DIR. Models come from $OOMSIGHT_MODELS or ../shared/golden/models.
set -eu
build=$1; root=$(cd "$(dirname "$0")/.." && pwd)
models=${OOMSIGHT_MODELS:-$root/../shared/golden/models}
for model in Llama-3.1-8B-Instruct Qwen3-235B-A22B Qwen3.6-27B-AWQ-INT4; do
    [ -d "$models/$model" ] || continue
    printf '%-24s' "$model"; "$build/tests/bench/bench_plan" "$models/$model" 2
done
"$build/tests/bench/bench_replay"
# A log of 64 MB: the five cases and their healthy twins, with an hour of serving between them.
logs=${OOMSIGHT_LOGS:-$root/../shared/phantom-logs}
if [ -d "$logs" ]; then
    big=$(mktemp); trap 'rm -f "$big"' EXIT
    python3 "$root/tools/big_log.py" "$logs" 64 >"$big"
    "$build/tests/bench/bench_explain" "$big"
fi
