# An engine that is newer than every known one is asked for its flags. Here it is a script, which answers what each case says.
work=$(mktemp -d); mkdir -p "$work/tmp" "$work/bin" "$work/lib/python3.11/site-packages/vllm-0.99.0.dist-info"
record="$work/lib/python3.11/site-packages/vllm-0.99.0.dist-info/RECORD"
printf 'vllm/__init__.py,sha256=abc,3\n' >"$record"
export TMPDIR="$work/tmp" HOME="$work/home" XDG_CACHE_HOME="$work/cache" WORK="$work" PATH="$work/bin:$PATH"
cat >"$work/bin/python3" <<'END2'
#!/bin/sh
[ "$1" = -c ] && { [ "$3" = vllm ] && cat "$WORK/has"; exit 0; }
read -r request <"/proc/self/fd/${OOMSIGHT_ASK%,*}"
printf '%s' "$request" >"$WORK/request"
case $request in *'"probe"'*) . "$WORK/probe" ;; *) . "$WORK/case" ;; esac >"/proc/self/fd/${OOMSIGHT_ASK#*,}"
END2
printf '#!/bin/sh\n' >"$work/bin/vllm"; chmod +x "$work/bin/python3" "$work/bin/vllm"
printf 'cuda 13.0\ntorch 2.14.0\nengine 0.99.0\n' >"$work/has"
hash=$(sha256sum "$record" | cut -d' ' -f1)
answer='{"id":1,"schema":"oomsight.exact/1","engine":"vllm","version":"0.99.0","verdict":"unknown"'
flags='"flags":[{"names":["--model"],"dest":"model","kind":"str"},
{"names":["--max-model-len"],"dest":"max_model_len","kind":"str"},
{"names":["--enable-prefix-caching"],"negative":["--disable-prefix-caching","--no-enable-prefix-caching"],"hidden":["--no-enable-prefix-caching"],"dest":"enable_prefix_caching","kind":"bool-optional"},
{"names":["--kv-cache-dtype"],"dest":"kv_cache_dtype","kind":"choice","item":"str","choices":["auto","fp8","octave"],"default":"auto"},
{"names":["--frobnicate","-fr"],"dest":"frobnicate","kind":"choice","item":"int","choices":[1,2],"default":2},
{"names":["--attention-config"],"dest":"attention_config","kind":"json","json_keys":[{"name":"backend","kind":"str"},{"name":"brand_new","kind":"int"}]},
{"names":["--profiler-config"],"dest":"profiler_config","kind":"json"},
{"names":["--wobble"],"negative":["--no-wobble"],"dest":"wobble","kind":"bool-optional","default":false}]'
flags=$(printf %s "$flags" | tr -d '\n')
said="$answer,\"package\":\"$hash\",\"torch\":\"2.14.0\",$flags,\"architectures\":[\"LlamaForCausalLM\"],\"left_out\":{}}"
learn() {
    echo "== $1"; printf '%s\n' "$2" >"$work/case"; shift 2
    "$OOMSIGHT" learn --timeout 20 "$@" 2>&1 | sed "s#$work#WORK#g"
}
plan() { "$OOMSIGHT" plan --gpu h100 --offline "$@" 2>&1 | sed -n '1p;/Assumed/p;/Expected/p;/because/p;/flags were/p;/learn/p;/rules of/p;/is not modelled/p' | sort -u; }
serve="-- vllm serve ../fixtures/models/small-llama"
# shellcheck disable=SC2089,SC2090 # JSON with its quotes, as an engine gets it
for_each() {
    for words in "" "--no-such-flag 3" "--enforce-eager" "--frobnicate 1" "--frobnicate 2" "--frobnicate 3" "-fr 1" "--wobble" "--no-wobble" "--kv-cache-dtype octave" \
        "--kv-cache-dtype fp8_e5m2" "--no-enable-prefix-caching" "--max-model-len 4096" '--attention-config {"brand_new":1}' \
        '--attention-config {"brand_new":"x"}' '--attention-config {"flash_attn_version":3}' '--profiler-config {"brand_new":1}'; do echo "-- $words"; plan $serve $words; done
}
echo "== before"; plan $serve; plan $serve --no-such-flag 3
learn "learned" "echo '$said'"; sed 's#"[^"]*/watched.json"#"WATCHED"#' "$work/request"; echo
(cd "$work/cache/oomsight/learned" && stat -c '%A %n' ./* && cat ./*)
echo "== planned"; for_each
echo "== without the engine"; plan --vllm 0.99.0 $serve --no-such-flag 3
echo "== a known release"; plan --vllm 0.33.0 $serve --enforce-eager
file=$work/cache/oomsight/learned/vllm-0.99.0-$(echo "$hash" | cut -c1-12).json; cp "$file" "$work/kept"
echo "== architectures"
mkdir "$work/new"; sed 's/LlamaForCausalLM/BrandNewForCausalLM/' ../fixtures/models/small-llama/config.json >"$work/new/config.json"
which() { "$OOMSIGHT" plan --gpu h100 --offline -- vllm serve "$1" 2>&1 | sed -n '1p;/rchitecture/,/^$/p' | sed "s#$work#WORK#g"; }
which "$work/new"; sed -i 's/LlamaForCausalLM/BrandNewForCausalLM/' "$file"; which "$work/new"; which ../fixtures/models/small-llama; cp "$work/kept" "$file"
echo "== methods of quantization"
mkdir "$work/awq"; sed 's/^{/{"quantization_config":{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true},/' ../fixtures/models/small-llama/config.json >"$work/awq/config.json"
for list in "" '"quantization":["awq","fp8"],' '"quantization":["fp8"],'; do
    sed "s/{\"names\":\[\"--wobble\"/{\"names\":[\"--quantization\"],\"dest\":\"quantization\",\"kind\":\"str\"},&/;s/\"architectures\"/$list&/" "$work/kept" >"$file"
    echo "-- $list"; plan -- vllm serve "$work/awq"; plan $serve --quantization none
done; cp "$work/kept" "$file"
echo "== patched"; echo 'vllm/other.py,,' >>"$record"; plan $serve --no-such-flag 3; printf 'vllm/__init__.py,sha256=abc,3\n' >"$record"
bad() { echo "== $1"; plan $serve --no-such-flag 3; rm -f "$file"; cp "$work/kept" "$file"; chmod 600 "$file"; }
chmod 620 "$file"; bad "others can write it"
mv "$file" "$work/elsewhere"; ln -s "$work/elsewhere" "$file"; bad "a link"
rm "$file"; mkfifo "$file"; bad "a pipe"
echo '{' >"$file"; bad "half of one"
sed -i s/learned.1/learned.9/ "$file"; bad "another form"
sed -i s/0.99.0/0.98.0/ "$file"; bad "another release"
sed -i 's/"engine":"vllm"/"engine":"sglang"/' "$file"; bad "another engine"
sed -i 's/"octave"/"oct\\u001bave"/' "$file"; bad "control characters"
sed -i 's/"names":\["--model"\]/"names":7/' "$file"; bad "a flag without names"
head -c 5000000 /dev/zero | tr '\0' ' ' >>"$file"; bad "too long"
bad "as it was"
rm -r "$work/cache"
learn "no torch" "echo '$said' | sed 's/\"torch\":\"2.14.0\",//;s/\"left_out\":{/&\"torch\":\"PackageNotFoundError: torch\"/'"; ls "$work/cache/oomsight/learned"; rm -r "$work/cache"
learn "no flags" "echo '$answer,\"left_out\":{\"flags\":\"TypeError: no\\\\nparser\"}}'"
learn "no list of files" "echo '$answer,$flags,\"left_out\":{\"package\":\"FileNotFoundError: RECORD\"}}'"
learn "broken" "echo '{\"id\":1,\"schema\":\"oomsight.exact/1\",\"engine\":\"vllm\",\"version\":null,\"verdict\":\"unknown\",\"text\":\"libcudart.so.13: cannot open\"}'"
learn "a release that is no name" "echo '$said' | sed 's#0.99.0#0.99.0/../x#'"
learn "control characters" "echo '$said' | sed 's/octave/oct\\\\u001bave/'"
learn "garbage" "echo Segmentation fault"
learn "too long" "head -c 3000000 /dev/zero | tr '\\0' x"
learn "hangs" "sleep 60" --timeout 1
learn "a known release" "echo '$said' | sed s/0.99.0/0.32.0/"
learn "an old one, changed" "echo '$said' | sed s/0.99.0/0.32.0+ours/"
learn "another engine" "echo '$said'" --engine sglang
learn "no engine" "echo '$said'" --engine llama
touch "$work/full"; XDG_CACHE_HOME="$work/full" learn "nowhere to write" "echo '$said'"
XDG_CACHE_HOME=/proc/none learn "read-only" "echo '$said'"
(unset XDG_CACHE_HOME HOME; learn "no home" "echo '$said'")
learn "no Python" "echo '$said'" --python "$work/none"
printf 'cuda 13.0\n' >"$work/has"; learn "nothing installed" "echo '$said'"
printf 'cuda 13.0\ntorch 2.14.0\nengine 0.99.0\n' >"$work/has"
# Small starts are asked for once there is something to keep: their answer is a second one.
probe() { title=$1; printf '%s\n' "$2" >"$work/probe"; shift 2; learn "$title" "echo '$said'" --probe "$@"; sed -n '/"terms"/,$p' "$file" 2>/dev/null; rm -rf "$work/cache"; }
dense='"dense":{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,"intermediate_size":12288,"num_hidden_layers":2,"num_attention_heads":32,"num_key_value_heads":8,"torch_dtype":"bfloat16","vocab_size":151936}'
start='"model":"dense","command":["vllm","serve","dense","--max-num-seqs","1024","--max-num-batched-tokens","8192","--enforce-eager"],"environment":[],"eager":true,"requested_bytes":76515862119'
terms='"terms":[{"term":"sampler","form":"bytes_per_logit","value":20,"low":19.9,"high":20.1},{"term":"before_reading","form":"cublas","value":0},{"term":"retained","form":"constant","value":67108864},{"term":"tomorrow","form":"new","value":1}]'
tell() { echo "echo '$answer,$1}'"; }
flags_all=$(printf '%s' "$flags" | sed 's/]$//')
for name in gpu-memory-utilization max-num-seqs max-num-batched-tokens; do flags_all="$flags_all,{\"names\":[\"--$name\"],\"dest\":\"$(echo $name | tr - _)\",\"kind\":\"str\"}"; done
said="$answer,\"package\":\"$hash\",\"torch\":\"2.14.0\",$flags_all,{\"names\":[\"--enforce-eager\"],\"dest\":\"enforce_eager\",\"kind\":\"flag\"}],\"architectures\":[\"LlamaForCausalLM\"],\"left_out\":{}}"
figures() { "$OOMSIGHT" plan --gpu h100 --offline --vllm 0.99.0 $serve --enforce-eager --max-num-seqs 1024 | sed -n '/KV cache  /p'; }
learn "planned without" "echo '$said'"; figures
echo "$(tell "$terms,\"probes\":[{$start,\"available_bytes\":69000000000}],\"configs\":{$dense}")" >"$work/probe"
learn "planned with terms" "echo '$said'" --probe; figures; cat "$work/request"; echo; rm -rf "$work/cache"
probe "what they leave open" "$(tell "$terms,\"probes\":[{$start,\"available_bytes\":60000000000},{\"command\":[7,{}],\"environment\":\"x\"},7,{\"model\":7},{$start,\"available_bytes\":-1}],\"configs\":{$dense},\"left_out\":{\"moe\":\"it took more than 120 seconds\"}")"
probe "a model that is none" "$(tell "$terms,\"probes\":[{$start,\"available_bytes\":69000000000}],\"configs\":{\"dense\":[]}")"
probe "no term that is known" "$(tell '"terms":[{"term":"tomorrow","value":1}]')"
probe "no terms" "$(tell '"terms":[],"left_out":{"dense-256":"RuntimeError: no\u001b device"}')"
probe "terms that are none" "$(tell '"terms":{"sampler":14}')"
probe "starts that cannot be read" "echo Segmentation fault"
probe "starts of another release" "$(tell "$terms" | sed s/0.99.0/0.98.0/)"
probe "starts that hang" "sleep 60" --timeout 1
probe "starts of a broken installation" "echo '{\"id\":1,\"schema\":\"oomsight.exact/1\",\"engine\":\"vllm\",\"version\":null,\"verdict\":\"unknown\",\"text\":\"libcudart.so.13: cannot open\"}'"
learn "nothing to start" "echo '$said' | sed s/0.99.0/0.32.0/" --probe; grep -c probe "$work/request"; rm "$work/probe"
echo "== nothing is left"; ls -A "$work" "$work/tmp" | tr '\n' ' ' | sed "s#$work#WORK#g"; echo; rm -rf "$work"
