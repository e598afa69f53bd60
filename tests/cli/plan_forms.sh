# One command in many forms: in one argument, by dotted keys, of a sub-command, in Python, and of builds between releases. First line and exit.
model=../fixtures/models/small-llama
brief() { said=$("$OOMSIGHT" plan --offline --strict --gpu l40s "$@" 2>&1); code=$?; echo "$said" | head -n 1; echo "exit $code"; }
brief -- "vllm serve $model --max-model-len 4096"
brief -- "HF_HUB_OFFLINE=1 exec vllm serve $model && echo done"
for flag in --kv-transfer-config.kv_connector=LMCacheConnectorV1 --kv_transfer_config.kv_role=kv_both '--kv-transfer-config={"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'; do
    brief -- vllm serve $model "$flag"
done
brief -- vllm run-batch -i in.jsonl --output-file out.jsonl --model $model
brief -- python -m vllm.entrypoints.openai.run_batch -i in.jsonl -o out.jsonl --model $model
brief -- vllm run-batch -i in.jsonl -o out.jsonl --model $model --no-such-flag 1
for value in args.len 'int(x)' '4*1024' 'f"{n}"' os.environ['"LEN"']; do
    brief -- "LLM(\"$model\", max_model_len=$value)"
done
brief -- "LLM(\"$model\", **kw)"
brief -- "LLM(name, max_model_len=4096)"
brief -- "LLM(\"$model\", max_model_len=4_096, seed=args.seed, dtype=torch.bfloat16)"
for tag in nightly nightly-0a1b2c dev main-cu129 v0.99.0; do
    brief -- docker run --gpus all vllm/vllm-openai:$tag --model $model
done
"$OOMSIGHT" plan --offline --json --gpu l40s -- uv run --with vllm==0.24.0 vllm serve $model | grep -o '"version": *"[0-9.]*"' | head -n 1
