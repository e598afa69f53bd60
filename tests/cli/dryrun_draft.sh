# With a draft model the engine starts with its own runner; with requests it gets a variable, and the report has it.
work=$(mktemp -d)
printf '#!/bin/sh\necho "runner: ${VLLM_USE_V2_MODEL_RUNNER-its own}"\n' >"$work/vllm"
chmod +x "$work/vllm"
PATH=$work:$PATH
ask() { "$OOMSIGHT" dryrun --gpu A30 --cuda 13 "$@" -- vllm serve small --speculative-config '{"method": "ngram"}' 2>&1 | grep -oE 'runner: .*|started with .*|"with": .*'; }
ask
ask --load 1:1-1:1
ask --json
ask --json --load 1:1-1:1
VLLM_USE_V2_MODEL_RUNNER=1 ask --load 1:1-1:1
rm -r "$work"
