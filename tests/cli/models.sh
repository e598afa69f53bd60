# Built-in models are listed, searched and counted; a newer list is checked, kept for this version, and no other is used.
root=$(cd ../.. && pwd)
HOME=$(mktemp -d)
export HOME HF_HUB_CACHE=/nowhere/hub
unset XDG_DATA_HOME
models() { "$OOMSIGHT" models "$@" 2>&1 | sed "s|$HOME|HOME|g"; }
models | tail -n 1 | sed -E 's/1[0-9]{3} /1000 or more /'
models qwen3-0.6B
models Qwen/Qwen3-0.6B --json
for asked in "" Qwen/Qwen3-0.6B nothing-like-it; do
    "$OOMSIGHT" models --json $asked | python3 "$root/tools/check_schema.py" "$root/data/schema/models.schema.json" && echo "the schema holds"
done
models deepseek-ai/DeepSeek-R1-0528
models nothing-like-it; "$OOMSIGHT" models nothing-like-it >/dev/null; echo $?
mkdir "$HOME/model"
printf '{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_attention_heads":4,"num_hidden_layers":2,"vocab_size":100}' >"$HOME/model/config.json"
models "$HOME/model"
config=$(cat "$HOME/model/config.json")
printf '{"schema":"oomsight.catalogue/2","models":{"b/alike":{"like":"a/small","level":"sizes","wide":15},"a/small":{"config":%s}}}' "$config" >"$HOME/new.json"
models --update "$HOME/new.json"
models
"$OOMSIGHT" plan --offline --gpu l4 --vllm 0.19.1 --json -- vllm serve b/alike | grep -A1 '"assumed"'
chmod g+w "$HOME/.local/share/oomsight/catalogue.json"
models | tail -n 1 | sed -E 's/1[0-9]{3} /1000 or more /'
chmod g-w "$HOME/.local/share/oomsight/catalogue.json"
sed -i 's/catalogue.2 [^"]*/catalogue\/2 0.0.0/' "$HOME/.local/share/oomsight/catalogue.json"
models | tail -n 1 | sed -E 's/1[0-9]{3} /1000 or more /'
for bad in '{"schema":"oomsight.catalogue/9","models":{}}' '{"schema":"oomsight.catalogue/2","models":{}}' '[]' '{"x' '{"a b/c":{"config":{}}}' '{"a/b":{"config":{}}}' '{"a/b":{"like":"a/c"}}'; do
    printf '%s' "$bad" >"$HOME/bad.json"
    models --update "$HOME/bad.json"
done
"$OOMSIGHT" plan --offline --gpu l4 -- vllm serve Qwen/Qwen3-O.6B 2>&1 | grep -o 'did you mean.*'
"$OOMSIGHT" plan --offline --gpu l4 -- vllm serve nobody/Qwen3-32B 2>&1 | grep -o 'did you mean.*'
"$OOMSIGHT" plan --offline --gpu l4 -- vllm serve nobody/nothing 2>&1 | grep -c 'did you mean'
rm -r "$HOME"
