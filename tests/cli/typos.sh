# A word that is nearly a command names it; one word for one thing, whichever command; older spellings stay.
for word in plna explian frobnicate; do "$OOMSIGHT" $word 2>&1; done
for option in --gpu-cc --compute-capability; do
    "$OOMSIGHT" dryrun --gpu-total 2GiB $option nine -- true 2>&1 | tail -n 1
    "$OOMSIGHT" plan --gpu-total 5GiB $option nine -- vllm serve x 2>&1 | tail -n 1
done
# So does a word that is nearly an option or a GPU; an engine's flag belongs behind `--`.
for option in --gpuu --max-fi --ofline --frobnicate --max-model-len; do "$OOMSIGHT" plan $option 2>&1; done
"$OOMSIGHT" explain --folow 2>&1
for gpu in 4009 h10x8 5909 4999; do "$OOMSIGHT" plan --gpu $gpu -- vllm serve x 2>&1; done
# Asking the hub and not asking it has one pair of words, whatever is done without either.
for command in explain check matrix; do "$OOMSIGHT" $command --hub --offline /no/such/file >/dev/null 2>&1; echo "$command $?"; done
echo "-- a model, a word of the engine's command; help of one command"
HF_ENDPOINT=http://127.0.0.1:9 HF_HUB_CACHE=/nowhere "$OOMSIGHT" plan --gpu 4090 -- vllm serve Qwen/Qwen3-8b 2>&1 | grep -o 'did you mean .*'
for name in Qwen/Qwen3-80B nobody/has-this; do "$OOMSIGHT" plan --offline --gpu 4090 -- vllm serve $name 2>&1 | grep -c 'did you mean'; done
"$OOMSIGHT" plan --offline --gpu 4090 -- vllm serv Qwen/Qwen3-8B 2>&1
"$OOMSIGHT" help plan | head -n 2
