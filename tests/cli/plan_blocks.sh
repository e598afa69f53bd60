# Blocks that quantising gives back and takes again. The engine on a simulated GPU held 34,576, 23,568 and 25,808 KV tokens (0.32.0).
plan() { "$OOMSIGHT" plan --offline --json "$@" | python3 -c 'import json, sys; plan = json.load(sys.stdin); print(plan["likely"], plan["phase"], plan["kv"]["tokens"])'; }
plan --gpu rtx-4090 -- vllm serve Qwen/Qwen3-14B-Base --max-model-len 4096 --enforce-eager --quantization fp8
plan --gpu l4 -- vllm serve Qwen/Qwen2.5-14B --enforce-eager --quantization fp8 --max-model-len 22512
plan --gpu rtx-4090 -- vllm serve Model-SafeTensors/L3-Aethora-15B --max-model-len 4096 --enforce-eager --quantization fp8
# Marlin's AWQ weights are unpacked to 32 bits each from 0.19.0 on: the engine asked for 1.75 GiB more than there was.
for release in 0.18.1 0.19.0 0.32.0; do
    plan --gpu a100-40gb --engine vllm=$release -- vllm serve hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4 --enforce-eager \
        --gpu-memory-utilization 0.97 --max-num-batched-tokens 512 --max-model-len 1024
done
# A type of cache that every check takes, and the first forward pass not: the engine on a simulated B200 and H100 ended there.
config() { mkdir -p "$work/$1"; printf '{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":1024,"num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":%s,"intermediate_size":2048,"vocab_size":4096,"max_position_embeddings":8192,"torch_dtype":"bfloat16"}' "$2" >"$work/$1/config.json"; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; config wide 192
for release in 0.11.0 0.11.1 0.32.0; do plan --gpu h100 --engine vllm=$release -- vllm serve "$work/wide" --kv-cache-dtype fp8_e5m2; done
plan --gpu h100 -- vllm serve "$work/wide" --kv-cache-dtype fp8_e5m2 --attention-backend TRITON_ATTN
plan --gpu h100 -- vllm serve "$work/wide" --kv-cache-dtype fp8_e4m3 --attention-backend TRITON_ATTN
# Sizes of the cache have no bound: a negative one leaves nothing for it (_check_enough_kv_cache_memory), and 0 bytes are as if they were not given.
for words in '--kv-cache-memory-bytes -4' '--kv-cache-memory-bytes=-1' '--kv-cache-memory-bytes 0' '--num-gpu-blocks-override -3'; do
    plan --gpu h100 --vllm 0.33.0 -- vllm serve ../fixtures/models/small-llama $words
done
