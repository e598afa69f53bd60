# Refusals of SGLang, each by a command that it refuses: the engine's own sentence.
for words in \
    "--enable-megamoe-for-layernorm-sp" \
    "--speculative-draft-sink-size 2" \
    "--enable-page-major-kv-layout" \
    "--dcp-replicate-q-proj" \
    "--dcp-comm-backend a2a" \
    "--enable-linker-mla-dedup" \
    "--enable-mamba-cache-stochastic-rounding" \
    "--enable-prefill-cp" \
    "--enable-quant-communications" \
    "--enable-return-aux-hidden-states" \
    "--enable-tp-lm-head-all-to-all" \
    "--prefill-only-disable-kv-cache" \
    "--quantize-and-serve" \
    "--speculative-use-block-verification" \
    "--elastic-ep-join-mode scale" \
    "--flashinfer-a2a-dispatch-type bf16" \
    "--kv-cache-dtype mxfp8" \
    "--kv-cache-dtype nvfp4" \
    "--prefill-attention-backend cutedsl_mla" \
    "--quantization nvfp4_online" \
    "--moe-runner-backend lora_cutedsl" \
    "--prefill-kv-cache-dequant-dtype nvfp4" \
    "--sampling-backend intel_xpu" \
    "--speculative-moe-a2a-backend deepep_v2" \
    "--radix-eviction-policy tlru" \
    "--enable-encoder-swa-bounded-replay" \
    "--max-ep-size 2" \
    "--disable-cuda-graph-padding --enable-torch-compile" \
    "--gpu-id-step 0" \
    "--speculative-algorithm EAGLE --speculative-num-draft-tokens 2" \
    "--speculative-algorithm EAGLE --speculative-eagle-topk 2" \
    "--retraction-policy priority" \
    "--export-metrics-to-file" \
    "--enable-two-batch-overlap" \
    "--enable-prefix-mm-cache" \
    "--enable-ssl-refresh" \
    "--enable-pdmux"; do
    echo "-- $words"
    "$OOMSIGHT" plan --offline --gpu h100 -- sglang serve ../fixtures/models/small-llama $words | sed -n 's/^  Expected error: /  /p'
done
echo "== what a class takes, and what goes together with elastic expert parallelism"
while read -r model words; do
    echo "-- $model $words"
    # shellcheck disable=SC2086 # words of a command
    "$OOMSIGHT" plan --offline --gpu h100 -- sglang serve "$model" $words | sed -n '/^  Expected error: /,/^$/p'
done <<'L'
openai/gpt-oss-20b --attention-backend flashinfer
openai/gpt-oss-20b --prefill-attention-backend flashinfer --decode-attention-backend triton
openai/gpt-oss-20b --attention-backend triton
google/gemma-4-12B-it --attention-backend flashinfer
google/gemma-4-12B-it --decode-attention-backend fa3
meta-llama/Llama-4-Scout-17B-16E-Instruct --attention-backend flashinfer
allenai/Olmo-3.1-32B-Instruct --attention-backend flashinfer
tiiuae/falcon-11B
tiiuae/falcon-11B --model-impl transformers
../fixtures/models/small-moe --elastic-ep-backend nixl --enable-eplb --eplb-algorithm deepseek
../fixtures/models/small-moe --elastic-ep-backend nixl --pp-size 2
L
