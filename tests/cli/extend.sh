# The ways of docs/contributing/extend.md, gone in a copy of data/: a GPU, a record with its signal and rule, a model family, an engine version.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp -r ../../data "$work/data"
data=$work/data
model=../fixtures/models/small-llama

# A GPU: a copy of the nearest relative with another name.
sed 's/"name": .*/"name": "NVIDIA Example 8",/; s/"aliases": .*/"aliases": ["example-8"],/' "$data/gpus/rtx-3070-laptop.json" >"$data/gpus/example-8.json"
python3 ../../tools/check_data.py "$data" | sed -E 's/.*; ([0-9]+ problems)/\1/'
"$OOMSIGHT" plan --gpu example-8 -- vllm serve $model >"$work/out" 2>&1; echo "without the file: exit $?"
"$OOMSIGHT" plan --data "$data" --gpu example-8 -- vllm serve $model --max-model-len 4096 | sed -n 1,2p
sed -i 's/"example-8"/"4090"/' "$data/gpus/example-8.json" # a word that another file has
python3 ../../tools/check_data.py "$data" | grep -o "4090.*" | head -n 1; rm "$data/gpus/example-8.json"

# A record: a log that nothing explains yet, then signal, rule, record.
cp -r ../fixtures/kb "$work/kb"; mkdir "$work/kb/vllm/example"
printf 'Traceback (most recent call last):\n  File "/app/vllm/x.py", line 1, in example_step\n    example_buffer = make(\ntorch.AcceleratorError: CUDA error: out of memory\n' >"$work/kb/vllm/example/positive.log"
printf 'torch.AcceleratorError: CUDA error: out of memory\n' >"$work/kb/vllm/example/negative.log"
"$OOMSIGHT" explain --data "$data" "$work/kb/vllm/example/positive.log" | sed -n 2p
sed -i 's/^    {"id": "frame.lora"/    {"id": "frame.example", "kind": "frame", "literals": ["example_buffer = make("]},\n&/' "$data/explain/signals.json"
sed -i 's/^    {"id": "device"/    {"id": "host_memory:example", "by": "said", "leaves": ["host_memory"], "why": "an example", "all": ["frame.example"]},\n&/' "$data/explain/phases.json"
sed 's/sleep-host-copy/example/; s/frame.sleep_copy/frame.example/; s/Falling asleep needs.*",/An example",/' "$data/kb/vllm/sleep-host-copy.json" >"$data/kb/vllm/example.json"
"$OOMSIGHT" kb lint --data "$data" | sed -E 's/.*, ([0-9]+ problems)/\1/'
"$OOMSIGHT" kb test --data "$data" "$work/kb" | tail -n 1 | sed -E 's/.*, ([0-9]+ problems)/\1/'
"$OOMSIGHT" explain --data "$data" "$work/kb/vllm/example/positive.log" | sed -n 1,2p

# A model family: a class that no record names, then its record, alone and with a slip of the pen.
mkdir "$work/new"
sed 's/LlamaForCausalLM/ExampleForCausalLM/; s/"model_type": *"llama"/"model_type": "example"/' $model/config.json >"$work/new/config.json"
weights() { "$OOMSIGHT" plan --json --gpu 4090 "$@" -- vllm serve "$work/new" 2>&1 | sed -nE 's/.*"weights_bytes": ([0-9]+).*/\1/p;s/.*(architecture [A-Za-z]* is not known).*/\1/p' | head -n 2; }
weights
cat >"$data/models/example.json" <<'RECORD'
{
  "classes": {"ExampleForCausalLM": {"model_type": "example"}},
  "source": "an example: Llama with a norm of queries and keys, and a bias behind attention",
  "like": "llama",
  "attention": {"o_bias": true, "head_norm": "head"}
}
RECORD
python3 ../../tools/check_data.py "$data" | sed -E 's/.*; ([0-9]+ problems)/\1/'
weights --data "$data"
sed -i 's/"o_bias"/"out_bias"/' "$data/models/example.json"
"$OOMSIGHT" plan --data "$data" --gpu 4090 -- vllm serve "$work/new" 2>&1 | sed "s:$work:WORK:"
rm "$data/models/example.json"

# An engine version: its number, and a rule that changed with it.
"$OOMSIGHT" plan --json --gpu 4090 --vllm 99.0.0 -- vllm serve $model | tr -d "\n" | grep -o "newer than any supported" | head -n 1 | wc -l
sed -i '1,6s/\]}/, "99.0.0"]}/' "$data/engines/vllm/rules.json"
sed -i 's/{"since": "0.20.0", "value": 0.92}\]/{"since": "0.20.0", "value": 0.92}, {"since": "99.0.0", "value": 0.5}]/' "$data/engines/vllm/rules.json"
"$OOMSIGHT" engines --data "$data" | grep -o '99.0.0'
"$OOMSIGHT" plan --data "$data" --json --gpu 4090 -- vllm serve $model | tr -d '\n' | grep -oE '"version": "99.0.0"|newer than any supported'
for version in 0.32.0 99.0.0; do # the share of the card that the engine takes when it is not told
    "$OOMSIGHT" plan --data "$data" --json --gpu 4090 --vllm $version -- vllm serve $model | sed -nE 's/.*"phase": "kv_sizing".*"limit_bytes": ([0-9]+).*/\1/p'
done
