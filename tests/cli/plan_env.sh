# Variables of the engine: given, taken from here, or not set.
backend() { "$OOMSIGHT" plan --json --vllm 0.11.0 --gpu 4090 "$@" -- vllm serve ../fixtures/models/small-llama | grep -o '"attention_backend": "[A-Z_]*"'; }
export VLLM_ATTENTION_BACKEND=FLASHINFER
backend --env VLLM_ATTENTION_BACKEND=TRITON_ATTN
backend --env VLLM_ATTENTION_BACKEND
backend
unset VLLM_ATTENTION_BACKEND
backend --env VLLM_ATTENTION_BACKEND
# A variable that the release does not know has no effect, and the answer says so.
"$OOMSIGHT" plan --json --vllm 0.19.1 --gpu 4090 --env VLLM_ATTENTION_BACKEND=FLASHINFER -- vllm serve ../fixtures/models/small-llama | grep -o '"attention_backend": "[A-Z_]*"\|VLLM_ATTENTION_BACKEND is no.*'
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu 4090 -- VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve ../fixtures/models/small-llama --fail-on-environ-validation | head -5
