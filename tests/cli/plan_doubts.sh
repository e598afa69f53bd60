# A start is certain only where everything in it is known. What is not known is named in the first lines, and --strict counts it as a
# failure. Numbers of certainty are those of measured starts, and none is given where nothing was measured.
llama=../fixtures/models/small-llama moe=../fixtures/models/small-moe
plan() { "$OOMSIGHT" plan --offline "$@"; }
json() { "$OOMSIGHT" plan --offline --json "$@" | python3 -c 'import json, sys; plan = json.load(sys.stdin); '"$CODE"; }
first() { plan "$@" | head -n 4; }
echo "a flag that is not modelled"
first --gpu h100 --vllm 0.32.0 -- vllm serve $llama --kv-transfer-config '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'
for flag in '--kv-offloading-size 8' '--all2all-backend deepep_low_latency'; do
    first --gpu h100 --vllm 0.32.0 -- vllm serve $llama $flag | sed -n '1p;3p'
    plan --strict --gpu h100 --vllm 0.32.0 -- vllm serve $llama $flag >/dev/null; echo "strict: exit $?"
done
first --gpu h100 --engine sglang=0.5.23 -- sglang serve $llama --enable-hierarchical-cache | sed -n '1p;3p'
echo "a PyTorch without code for the GPU, by release; boards with builds of their own are not meant"
for version in 0.11.0 0.19.1 0.24.0 0.32.0; do
    CODE='print(plan["engine"]["version"], plan["verdict"], plan["probability"], plan["doubts"][:1])'
    json --gpu v100 --vllm $version -- vllm serve $llama --dtype half
done
json --gpu orin-nx-16gb --vllm 0.24.0 -- vllm serve $llama --gpu-memory-utilization 0.5
echo "memory that the host shares: the hang, and the share that leaves a tenth of it"
first --gpu gb10 --vllm 0.23.0 -- vllm serve $llama --gpu-memory-utilization 0.70
CODE='print(plan["verdict"], plan["doubts"])'
json --gpu gb10 --vllm 0.23.0 -- vllm serve $llama --gpu-memory-utilization 0.65
json --gpu gb10 --vllm 0.23.0 -- vllm serve $llama --gpu-memory-utilization 0.5 --kv-cache-memory-bytes 100G
echo "weights in host memory take up to twice what is asked for"
for ram in 64 86 90; do
    CODE='print(plan["verdict"], plan["likely"], plan["probability"], plan["doubts"])'
    json --gpu 5090 --host-ram ${ram}GiB --vllm 0.19.1 -- vllm serve $moe --cpu-offload-gb 45 --max-model-len 4096
done
echo "a KV cache in host memory that is larger than the host's memory"
for ram in 64 128; do
    CODE='print(plan["verdict"], plan["likely"], plan["doubts"])'
    json --gpu h100 --host-ram ${ram}GiB --vllm 0.24.0 -- vllm serve $llama --kv-offloading-size 100
done
echo "releases that nobody has run, newer ones, and names that move"
for version in 0.22.1 0.17.0 0.99.0 1.0.0 nightly latest; do
    CODE='print(plan["engine"]["version"], plan["verdict"], plan["doubts"], plan["assumed"])'
    json --gpu h100 --vllm $version -- vllm serve $llama
done
echo "more GPUs than the command uses"
first --gpu A30x4 --vllm 0.19.1 -- vllm serve $llama
echo "the length that the engine chooses"
plan --gpu-total 5GiB --gpu-cc 8.9 --vllm 0.24.0 -- vllm serve $llama --max-model-len auto --gpu-memory-utilization 0.8 | grep -A1 'KV cache'
CODE='print(plan["setup"]["max_model_len"], plan["kv"]["tokens"], plan["kv"]["max_concurrency"])'
json --gpu-total 5GiB --gpu-cc 8.9 --vllm 0.24.0 -- vllm serve $llama --max-model-len auto --gpu-memory-utilization 0.8
echo "pipeline stages, of which few starts were measured"
CODE='print(plan["verdict"], plan["probability"], plan["doubts"])'
json --gpu a10x4 --vllm 0.11.0 -- vllm serve $moe --pipeline-parallel-size 4 --max-model-len 4096
echo "experts in MXFP4 on two GPUs with PyTorch 2.10, which ran out by fragmentation"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 - "$work" <<'PYTHON'
import json, sys
four = json.load(open("../fixtures/models/small-moe/config.json"))
four["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]}
json.dump(four, open(sys.argv[1] + "/config.json", "w"))
PYTHON
for version in 0.19.1 0.24.0; do json --gpu h100x2 --vllm $version -- vllm serve "$work" --tensor-parallel-size 2; done
echo "four A30 of a public report printed 17.24 GiB and 226,000 tokens: FlashInfer samples where it is installed, pip brings none with 0.11.0, the image does"
mkdir "$work/opt"
python3 - "$work/opt" <<'PYTHON'
import json, sys
json.dump({"architectures": ["OPTForCausalLM"], "model_type": "opt", "hidden_size": 2560, "word_embed_proj_dim": 2560, "ffn_dim": 10240, "num_hidden_layers": 32,
           "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048, "activation_function": "relu", "do_layer_norm_before": True,
           "torch_dtype": "float16"}, open(sys.argv[1] + "/config.json", "w"))
PYTHON
CODE='print(round(plan["kv"]["available_bytes"] / 2**30, 2), plan["kv"]["tokens"], [(f["name"], f["kv_tokens"]) for f in plan["forks"]])'
a30() { json --gpu A30x4 --gpu-total 23.50GiB --vllm 0.11.0 -- "$@" --tensor-parallel-size 4 --gpu-memory-utilization 0.8 --max-num-batched-tokens 8192; }
a30 vllm serve "$work/opt"
a30 VLLM_USE_FLASHINFER_SAMPLER=1 vllm serve "$work/opt"
a30 docker run -v "$work/opt:/m" vllm/vllm-openai:v0.11.0 --model /m
echo "cold or warm, the cache is in the range, and so are 12,610,604,073 bytes: a start on the simulated GPU, which measures no kernels"
CODE='kv = plan["kv"]; low, high = kv["available_low_bytes"], kv["available_high_bytes"]; print([f["name"] for f in plan["forks"] if low <= f["kv_bytes"] <= high], low <= 12610604073 <= high)'
json --gpu l4x2 --vllm 0.32.0 -- vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2
CODE='print(plan["verdict"], plan["probability"], plan["doubts"])'
echo "layers that the model drafts with, of which nothing is known"
python3 - "$work" <<'PYTHON'
import json, sys
own = json.load(open("../fixtures/models/small-latent/config.json"))
own.update(architectures=["Glm4MoeLiteForCausalLM"], model_type="glm4_moe_lite")
json.dump(own, open(sys.argv[1] + "/config.json", "w"))
PYTHON
first --gpu h100 --vllm 0.32.0 -- vllm serve "$work" --speculative-config '{"method": "mtp", "num_speculative_tokens": 1}' | sed 's/^  tmp[^ ]* /  model /'
echo "5 times in 10 says nothing, so it is not said"
plan --gpu v100 --vllm 0.11.0 -- vllm serve $llama --dtype half | head -n 1
echo "the newer runner's sampler is in the peak up to 0.25 only; the warm-up of 0.26.0 has a copy more than that of its neighbours"
for version in 0.25.0 0.26.0 0.27.0; do
    CODE='print(plan["engine"]["version"], [h["bytes"] for p in plan["phases"] if p["phase"] == "kv_sizing" for h in p["holds"] if h["owner"] == "activation peak"],
        [h["bytes"] for p in plan["phases"] if p["phase"] == "sampler_warmup" for h in p["holds"] if h["owner"] == "logits and sampler"])'
    json --gpu l4 --vllm $version -- vllm serve $llama --enforce-eager
done
first --gpu h100 --host-ram 64GiB --vllm 0.24.0 -- vllm serve $llama --kv-offloading-size 100 | sed -n '1p'
exit 0
