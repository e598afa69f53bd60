# Variables of the engine: given, taken from here, or not set.
backend() { "$OOMSIGHT" plan --json --vllm 0.11.0 --gpu 4090 "$@" -- vllm serve ../fixtures/models/small-llama | grep -o '"attention_backend": "[A-Z_]*"'; }
export VLLM_ATTENTION_BACKEND=FLASHINFER
backend --env VLLM_ATTENTION_BACKEND=TRITON_ATTN
backend --env VLLM_ATTENTION_BACKEND
backend
unset VLLM_ATTENTION_BACKEND
backend --env VLLM_ATTENTION_BACKEND
