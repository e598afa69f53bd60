# What is given is understood, or refused with what to give instead: a size has its unit, 24GB is a card, another program is named.
llama=../fixtures/models/small-llama
plan() { "$OOMSIGHT" plan --offline --vllm 0.19.1 "$@" 2>&1 | head -n 3; }
echo "a size without a unit is an error that names one"
for option in "--gpu-total 24" "--gpu-total 24564" "--gpu 4090 --gpu-used 3" "--gpu 4090 --host-ram 64"; do plan $option -- vllm serve $llama; done
"$OOMSIGHT" run --budget 1.5 -- true 2>&1; echo "exit $?"
"$OOMSIGHT" replay --gpu-total 24 x.trace 2>&1; echo "exit $?"
echo "0 is none, and so many bytes are bytes"
plan --gpu 4090 --gpu-used 0 -- vllm serve $llama | head -n 2
plan --gpu-total 25249710080 -- vllm serve $llama | head -n 2
echo "in a file, too"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
printf '# oomsight: gpu=4090 gpu-total=%s\nvllm serve "%s"\n' 23GiB "$PWD/$llama" >"$work/whole.sh"
printf '# oomsight: gpu=4090 gpu-total=%s\nvllm serve %s\n' 23 "$PWD/$llama" >"$work/bare.sh"
for file in whole bare; do "$OOMSIGHT" check --offline --vllm 0.19.1 "$work/$file.sh" | sed -n 1,2p | sed "s|$work|DIR|; s|$PWD/||"; done
echo "the size of a card"
plan --gpu 24GB -- vllm serve $llama
plan --gpu '80 gb x2' -- vllm serve $llama --tensor-parallel-size 2
plan --gpu 7GB -- vllm serve $llama
echo "programs that are not planned"
for command in "llama-server -m x.gguf" "ollama serve" "trtllm-serve x" "/usr/bin/text-generation-launcher --model-id x" "python3 -m llama_cpp.server --model x" \
    "docker run --gpus all ghcr.io/huggingface/text-generation-inference:2.0 --model-id x" "vllm serve $llama --omni --stage-id 0"; do
    plan --gpu h100 -- $command
done
"$OOMSIGHT" plan --offline --gpu h100 -- vllm serve $llama --omni 2>/dev/null; echo "exit $?"
"$OOMSIGHT" plan --offline --gpu h100 -- serve-it $llama
printf 'vllm serve %s --omni\n' "$PWD/$llama" >"$work/omni.sh"
"$OOMSIGHT" check --offline --gpu h100 "$work/omni.sh" | sed -n 1,2p | sed "s|$work|DIR|"
echo "a model of such a name is a model, and a name of no engine has the names"
plan --gpu h100 -- org/ollama-7b | cut -c 1-40
"$OOMSIGHT" plan --offline --gpu h100 --engine both -- vllm serve $llama
"$OOMSIGHT" plan --help | grep -A2 -e --engine
"$OOMSIGHT" plan --offline --gpu h100 --engine vllm --engine sglang -- vllm serve $llama | head -n 4
exit 0
