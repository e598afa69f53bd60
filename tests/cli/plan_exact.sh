# The installed engine is asked. Here it is a script, which answers what each case says: an answer, a refusal, and all that can go wrong.
work=$(mktemp -d); mkdir -p "$work/tmp"
export TMPDIR="$work/tmp" HOME="$work"
answer='{"id":1,"schema":"oomsight.exact/1","engine":"vllm","version":"0.32.0"'
cat >"$work/python3" <<'END'
#!/bin/sh
[ "$1" = -c ] && { cat "$WORK/has"; exit 0; }
read -r request <"/proc/self/fd/${OOMSIGHT_ASK%,*}"
printf '%s' "$request" >"$WORK/request"
printf '%s' "$HOME" >"$WORK/home"; touch "$HOME/kept"
. "$WORK/case" >"/proc/self/fd/${OOMSIGHT_ASK#*,}"
END
printf 'cuda 13.0\ntorch 2.13.0\nengine 0.32.0\n' >"$work/has"
chmod +x "$work/python3"; export WORK=$work
ask() {
    echo "== $1"; printf '%s\n' "$2" >"$work/case"; shift 2
    "$OOMSIGHT" plan --exact --python "$work/python3" --gpu h100 --offline "$@" 2>&1 | sed "s#$work#WORK#g" | sed -n 1,7p
}
serve="-- vllm serve ../fixtures/models/small-llama"
ask "the same" "echo '$answer,\"verdict\":\"taken\",\"values\":{\"max_model_len\":4096}}'" $serve --max-model-len 4096
ask "another length" "echo '$answer,\"verdict\":\"taken\",\"values\":{\"max_model_len\":1024,\"v2_model_runner\":false,\"capture_sizes\":[1,2,4],\"cudagraph_mode\":\"PIECEWISE\"}}'" $serve --max-model-len 4096
sizes='"param_bytes":[2493644800],"cache":{"budget_bytes":68719476736,"blocks":131072,"layers":[{"type":"FullAttentionSpec","block_size":16,"page_size_bytes":32768,"layers":16}]}'
ask "its classes" "echo '$answer,\"verdict\":\"taken\",\"values\":{},$sizes}'" $serve
ask "layers of a new kind" "echo '$answer,\"verdict\":\"taken\",\"values\":{},$sizes}' | sed s/FullAttention/Octave/" $serve
ask "refused" "echo '$answer,\"verdict\":\"refused\",\"stage\":\"config\",\"text\":\"there is no such thing as a small llama\"}'" $serve
ask "refused by plan alone" "echo '$answer,\"verdict\":\"taken\",\"values\":{}}'" $serve --swap-space 4
ask "another release" "echo '$answer,\"verdict\":\"taken\",\"values\":{}}'" --vllm 0.31.0 $serve
ask "not on this machine" "echo '$answer,\"verdict\":\"unknown\",\"text\":\"no draft here.\"}'" $serve
ask "broken" "echo '{\"id\":1,\"schema\":\"oomsight.exact/1\",\"engine\":\"vllm\",\"version\":null,\"verdict\":\"unknown\",\"text\":\"No module named vllm\"}'" $serve
ask "garbage" "echo Segmentation fault" $serve
ask "another's answer" "echo '$answer,\"verdict\":\"taken\"}' | sed 's/:1,/:2,/'" $serve
ask "one answer too many" "echo '$answer,\"verdict\":\"taken\"}' | sed p" $serve
ask "nothing" "exit 3" $serve
ask "too long" "head -c 3000000 /dev/zero | tr '\\0' x" $serve
ask "hangs" "sleep 60" --timeout 1 $serve
ask "a class alone" "exit 3" -- 'LLM(model="../fixtures/models/small-llama")'
echo "== what it was asked"; ask request "echo '$answer,\"verdict\":\"taken\",\"values\":{}}'" -- VLLM_USE_V1=1 python3 -m vllm.entrypoints.openai.api_server --port 8000 --model ../fixtures/models/small-llama -tp 2 >/dev/null
cat "$work/request"; echo
"$OOMSIGHT" plan --exact --python "$work/python3" --gpu h100 --offline --json $serve | sed -n '/"exact"/,/^  }/p'
echo "exit 3" >"$work/case"; "$OOMSIGHT" plan --exact --python "$work/python3" --gpu h100 --offline --json $serve | grep '"problem"'
other='{"id":1,"schema":"oomsight.exact/1","engine":"sglang","version":"0.5.23"'; sglang="-- sglang serve ../fixtures/models/small-llama"
ask "SGLang: the same" "echo '$other,\"verdict\":\"taken\",\"values\":{\"page_size\":1}}'" $sglang
ask "SGLang: its own" "echo '$other,\"verdict\":\"taken\",\"values\":{\"gpu_memory_utilization\":0.75,\"page_size\":64,\"capture_sizes\":[1,2]},\"param_bytes\":[2493644800],\"cache\":{\"budget_bytes\":68719476736,\"tokens\":1048576}}'" $sglang
ask "SGLang: refused" "echo '$other,\"verdict\":\"refused\",\"stage\":\"model\",\"text\":\"AssertionError: assert self.total_num_heads % attn_tp_size == 0\"}'" $sglang
unused() { printf "$2" >"$work/has"; ask "$1" "exit 3" $serve | tr -s '\n ' ' ' | sed 's/WILL.*The/The/; s/Weights.*//'; echo; }
unused "a Python without vLLM" 'torch 2.13.0\n'
unused "a PyTorch without CUDA" 'cuda\ntorch 2.13.0\nengine 0.32.0\n'
unused "CUDA without vLLM" 'cuda 13.0\ntorch 2.13.0\n'
echo "== no Python"; "$OOMSIGHT" plan --exact --python "$work/none" --gpu h100 --offline $serve | sed "s#$work#WORK#g" | sed -n 4p
"$OOMSIGHT" plan --exact --gpu all $serve; echo "exit $?"
"$OOMSIGHT" plan --python python3 --gpu h100 $serve; echo "exit $?"
echo "== nothing is left"; case $(cat "$work/home") in */oomsight-exact-*) ls "$(cat "$work/home")" 2>/dev/null || echo gone ;; esac; ls -A "$work"; rm -rf "$work"
