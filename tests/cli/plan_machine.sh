# Without --gpu the devices of this machine are planned for, with what others hold of them; without --vllm the engine installed here. The
# first lines say so. What is given goes first; an image brings its own engine.
models=$(cd ../fixtures/models && pwd)
work=$(mktemp -d)
mkdir -p "$work/bin" "$work/lib/python3.11/site-packages/vllm-0.11.0.dist-info"
printf '#!/bin/sh\necho "nobody runs this" >&2\n' >"$work/bin/python3"
chmod +x "$work/bin/python3"
here() { "$OOMSIGHT" dryrun --gpu "$1" --gpu-used 3GiB --cuda 13 --output /dev/null -- env PATH="$work/bin:/usr/bin:/bin" $2 "$OOMSIGHT" plan --offline $3 -- $4 2>&1 | grep -v "dryrun: added" | head -n 4; }
here 4090x2 "" "" "vllm serve $models/small-llama"
here 4090x2 CUDA_VISIBLE_DEVICES=1 "" "vllm serve $models/small-llama --tensor-parallel-size 2"
here 4090x2 "" "--gpu-used 0 --vllm 0.19.1" "vllm serve $models/small-llama"
here 4090x2 "" "" "docker run -v $models:/models vllm/vllm-openai:v0.24.0 --model /models/small-llama"
here 4090x2 "" "" "docker run -v $models:/models vllm/vllm-openai:latest --model /models/small-llama"
PATH="$work/bin:/usr/bin:/bin" "$OOMSIGHT" plan --offline --gpu a30x2 -- vllm serve "$models/small-llama" | sed -n 2,3p
PATH="$work/bin:/usr/bin:/bin" "$OOMSIGHT" plan --offline --gpu a30 --json -- vllm serve "$models/small-llama" | python3 -c 'import json, sys; print(json.load(sys.stdin)["assumed"])'
"$OOMSIGHT" plan --offline -- vllm serve "$models/small-llama"; echo "exit $?"
rm -r "$work"
