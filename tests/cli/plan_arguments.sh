# What the engine refuses before it looks at memory is refused here too, with exit 1 and a change that was planned again.
small() { gpu=$1; shift; "$OOMSIGHT" plan --offline --gpu "$gpu" -- vllm serve ../fixtures/models/small-llama "$@"; echo "exit $?"; echo; }
small h100x4 -tp 3
small h100 --max-model-len 1000000
small h100 --quantization nonsense
small h100 --quantization awq
small h100 --max-num-batched-tokens 100 --no-enable-chunked-prefill
small h100x1 -tp 2
small h100 extra words
small h100 --max-model-length 512
small h100 --gpu-memory-utilization 1.5
small h100 --max-num-seqs many
small h100 --enable-chunked-prefill=False
small h100 --gpu-memory-utilisation 0.8
small h100 --max-model-len '512 ' -O.cudagraph_mode=PIECEWISE
small h100 --kv-transfer-config '{"kv_connector": "LMCacheConnectorV1"}'
"$OOMSIGHT" plan --offline --vllm 0.10.2 --gpu h100 -- vllm serve ../fixtures/models/small-hybrid | head -5
echo "-- a second refusal behind the first: what the release has no flag for goes, too"
"$OOMSIGHT" plan --offline --vllm 0.10.2 --gpu h100 -- vllm serve ../fixtures/models/small-llama --kv-cache-dtype bfloat16 \
  --language-model-only --attention-backend TRITON_ATTN | sed -n '/^Suggested/,/Trade/p'
echo "-- another release offloads what this one does not: the host may have no room for it"
"$OOMSIGHT" plan --json --offline --vllm 0.8.2 --gpu 3090ti -- vllm serve ../fixtures/models/small-sliding --cpu-offload-gb 4 |
  python3 -c 'import json, sys; print([(fix["change"], fix["verdict"]) for fix in json.load(sys.stdin)["fixes"]])'
cd "$(mktemp -d)" && printf "vllm serve '%s' -tp 3 --max-model-len 1000000\n" "$OLDPWD/../fixtures/models/small-llama" >bad.sh
"$OOMSIGHT" check --offline --gpu h100x4 bad.sh >/dev/null; echo "check exits $?"
rm -f bad.sh; rmdir "$PWD"
