# Dry starts by halves: engines that are scripts.
work=$(mktemp -d)
try() { "$OOMSIGHT" bisect --offline "$@" >"$work/out" 2>&1; code=$?; }
for version in 0.24.0 0.28.0 0.29.0 0.31.0 0.32.0; do
    mkdir -p "$work/$version/bin"
    printf '#!/bin/sh\n[ "$1" = -c ] && { echo "cuda 12.8"; echo "engine %s"; exit 0; }\nexec sh "$@"\n' $version >"$work/$version/bin/python"
    { echo "#!$work/$version/bin/python"; case $version in 0.24.0|0.28.0) echo 'echo ready' ;; *) echo 'echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 GiB is free." >&2; exit 1' ;; esac; } >"$work/$version/bin/vllm"
    chmod +x "$work/$version/bin/vllm" "$work/$version/bin/python"
    engines="$engines --engine $version=$work/$version"
done
try --dryrun $engines --good 0.24.0 --bad 0.32.0 --gpu 4090 -- vllm serve ../fixtures/models/small-llama; cat "$work/out"; echo "exit $code"
rm -rf "$work"
