# The whole command to paste, however the command was written; what is taken away is gone from it, secrets are not shown.
llama=../fixtures/models/small-llama moe=../fixtures/models/small-moe
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
paste() { "$OOMSIGHT" plan --offline --gpu-total 5GiB --gpu-cc 8.9 --vllm 0.19.1 -- "$@" | awk '/^Suggested command/{on=1;next} /^  [A-Z]/{on=0} on'; }
echo "words, with another value for a flag that was given, in any spelling"
paste vllm serve $llama --gpu-mem 0.92 --max_model_len=131072 --port 8000
echo "an environment, a key, a word with a blank"
paste VLLM_USE_V1=1 vllm serve $llama --api-key sk-abcdefghijklmnop0123456789 --served-model-name 'my model'
echo "a container"
paste docker run --gpus all -v ../fixtures/models:/models vllm/vllm-openai:v0.19.1 --model /models/small-llama
echo "a line of a shell"
paste bash -c "vllm serve $llama --port 8000"
echo "Python"
paste "LLM(model='$llama', max_num_seqs=64, enforce_eager=True)"
echo "a flag in a file: the command line wins"
echo 'max-model-len: 131072' >"$work/serve.yaml"
paste vllm serve $llama --config "$work/serve.yaml" | sed "s|$work|DIR|"
echo "a flag that has to go is gone, with its value"
"$OOMSIGHT" plan --offline --gpu h100 --vllm 0.32.0 -- vllm serve $llama --quantization awq --port 8000 | awk '/^Suggested command/{on=1;next} /^  [A-Z]/{on=0} on'
echo "and no text about it is given as a flag"
"$OOMSIGHT" plan --offline --max-fit --gpu h100 --vllm 0.32.0 -- vllm serve $llama --quantization awq; echo "exit $?"
echo "GPUs that are there and idle are used"
paste_two() { "$OOMSIGHT" plan --offline --gpu "$@" | awk '/^Suggested command/{on=1;next} /^  [A-Z]/{on=0} on'; }
paste_two l4x2 --vllm 0.19.1 -- vllm serve $moe
echo "no flag is enough"
"$OOMSIGHT" plan --offline --gpu orin-nx-16gb --vllm 0.19.1 -- vllm serve $moe | grep -A6 'No flag is enough'
