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
