# Memory that is shared with the host: what others hold is assumed, unless it is said; nothing can be said, too.
others() { "$OOMSIGHT" plan --json --gpu gb10 "$@" -- vllm serve ../fixtures/models/small-llama | grep -A1 '"owner": "other processes"' | grep -o '"bytes": [0-9]*' | head -n 1 | grep . || echo none; }
others
others --gpu-used 0
others --gpu-used 1GiB
