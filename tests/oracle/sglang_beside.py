#!/usr/bin/env python3
"""Dry starts of SGLang beside `plan` of the same command: static fraction, weights, tokens, peaks.

    tests/oracle/sglang_beside.py BINARY [--missing] [--replan] [--only PATTERN] [--results FILE] [VERSION...]

Each start is a line of sglang.jsonl, with the first words of its failure when there was none; tools/figures.py makes
docs/evidence/results/sglang.csv from all lines. `first`: what plan said when the start was new. `given`: what plan says when it is told the memory that was free before loading. Environments are
sglang-VERSION where those of the other engines are. Exit 77 without any."""
import argparse
import contextlib
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import engines
import forked
import models
from models import small

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures", "models")
TURN_SECONDS = 150  # starts that follow one another in one turn at the machine
IMPORTED = ("sglang.cli.serve", "sglang.launch_server", "sglang.srt.entrypoints.http_server", "sglang.srt.managers.scheduler",
            "sglang.srt.managers.detokenizer_manager", "sglang.srt.model_executor.model_runner", "sglang.srt.models.registry")
EAGER = ["--disable-cuda-graph"]
TRITON = ["--attention-backend", "triton", "--sampling-backend", "pytorch"]
PLAIN = TRITON + EAGER
DRAFTS = ["--speculative-num-steps", "1", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "2"]
PIECEWISE = ["--disable-piecewise-cuda-graph"]  # before 0.5.14 captured prefill is compiled, which a fork of the engine can't; --disable-cuda-graph leaves it on
UNWARMED = ["--skip-server-warmup"]  # its image is prepared in a pool of memory that the simulated GPU has not
DECODE = TRITON + ["--disable-prefill-cuda-graph", "--cuda-graph-max-bs-decode", "8"]


def draft_of(fixture):
    """The draft model of EAGLE for it: one layer of the same shape."""
    with open(os.path.join(FIXTURES, fixture, "config.json"), encoding="utf-8") as f:
        return dict(json.load(f), architectures=["LlamaForCausalLMEagle"], num_hidden_layers=1, tie_word_embeddings=False)


def third_draft_of(fixture):
    """EAGLE3: a layer that reads the embedding beside the hidden state, and a head of fewer words."""
    return dict(draft_of(fixture), architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=32000)


def falcon_h1(layers):
    """Attention and a state in each layer."""
    return {"architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1", "hidden_size": 1024, "num_hidden_layers": layers, "num_attention_heads": 8, "num_key_value_heads": 2,
            "head_dim": 64, "intermediate_size": 2048, "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4,
            "mamba_expand": 2, "mamba_chunk_size": 128, "mamba_conv_bias": True, "mamba_proj_bias": False, "mamba_norm_before_gate": False, "mamba_rms_norm": False, "attention_bias": False,
            "mlp_bias": False, "projectors_bias": False, "attention_in_multiplier": 1.0, "attention_out_multiplier": 0.9375, "embedding_multiplier": 5.65, "key_multiplier": 0.39,
            "lm_head_multiplier": 0.039, "mlp_multipliers": [0.88, 0.58], "ssm_in_multiplier": 1.25, "ssm_multipliers": [0.35, 0.25, 0.35, 0.5, 0.35], "ssm_out_multiplier": 0.23,
            "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1e11, "max_position_embeddings": 16384, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": 32784,
            "bos_token_id": 1, "eos_token_id": 11, "pad_token_id": 0}


def granite_h(layers):
    """Mamba 2 but for the last layer, experts in each."""
    return {"architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "hidden_size": 1536, "num_hidden_layers": layers, "num_attention_heads": 12,
            "num_key_value_heads": 4, "intermediate_size": 512, "shared_intermediate_size": 1024, "num_local_experts": 16, "num_experts_per_tok": 6, "mamba_n_heads": 48, "mamba_d_head": 64,
            "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_proj_bias": False,
            "layer_types": ["mamba"] * (layers - 1) + ["attention"], "position_embedding_type": "nope", "attention_bias": False, "attention_multiplier": 0.0078125, "embedding_multiplier": 12,
            "residual_multiplier": 0.22, "logits_scaling": 6, "hidden_act": "silu", "normalization_function": "rmsnorm", "rms_norm_eps": 1e-5, "rope_theta": 10000,
            "max_position_embeddings": 131072, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "vocab_size": 100352, "bos_token_id": 100257, "eos_token_id": 100257, "pad_token_id": 100256}


def kimi_linear(layers):
    """KDA, and latent attention in each fourth layer."""
    full = [n for n in range(1, layers + 1) if n % 4 == 0]
    return {"architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "hidden_size": 2304, "num_hidden_layers": layers, "num_attention_heads": 32, "num_key_value_heads": 32,
            "head_dim": 72, "intermediate_size": 9216, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "mla_use_nope": True,
            "num_experts": 16, "num_experts_per_token": 8, "num_shared_experts": 1, "moe_intermediate_size": 1024, "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_expert_group": 1,
            "topk_group": 1, "moe_renormalize": True, "moe_router_activation_func": "sigmoid", "use_grouped_topk": True, "routed_scaling_factor": 2.446, "num_nextn_predict_layers": 0,
            "linear_attn_config": {"full_attn_layers": full, "kda_layers": [n for n in range(1, layers + 1) if n not in full], "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4},
            "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000, "rope_scaling": None, "model_max_length": 1048576, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "vocab_size": 163840, "bos_token_id": 163584, "eos_token_id": 163586, "pad_token_id": 163839}


def lfm2(layers):
    """Short convolutions, and attention in each third layer."""
    return {"architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": layers, "num_attention_heads": 32, "num_key_value_heads": 8,
            "layer_types": ["full_attention" if n % 3 == 2 else "conv" for n in range(layers)], "intermediate_size": 12288, "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0,
            "block_multiple_of": 256, "conv_L_cache": 3, "conv_bias": False, "norm_eps": 1e-5, "rope_theta": 1e6, "max_position_embeddings": 128000, "tie_word_embeddings": True,
            "torch_dtype": "bfloat16", "vocab_size": 65536, "bos_token_id": 1, "eos_token_id": 7, "pad_token_id": 0}


def qwen35(layers):
    """The text part of Qwen3.5-4B as a model of its own."""
    with open(os.path.join(FIXTURES, "small-hybrid", "config.json"), encoding="utf-8") as f:
        return dict(json.load(f)["text_config"], architectures=["Qwen3_5ForCausalLM"], num_hidden_layers=layers, hidden_act="silu", rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
                    layer_types=["full_attention" if n % 4 == 3 else "linear_attention" for n in range(layers)], bos_token_id=1, eos_token_id=2)


MODELS = {
    "falcon-h1, 4 layers": falcon_h1(4), "granite-h, 4 layers": granite_h(4), "kimi-linear, 4 layers": kimi_linear(4), "lfm2, 6 layers": lfm2(6), "qwen3.5, 4 layers": qwen35(4),
    "small-llama's draft": draft_of("small-llama"), "small-llama's third draft": third_draft_of("small-llama"),
    "deepseek-v3, 4 layers": dict(small("deepseek-v2-lite", 4), architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", q_lora_rank=1536, num_nextn_predict_layers=1,
                                  topk_method="noaux_tc", scoring_func="sigmoid", n_group=1, topk_group=1),
    "deepseek-v3.2, 4 layers": dict(small("deepseek-v2-lite", 4), architectures=["DeepseekV32ForCausalLM"], model_type="deepseek_v32", q_lora_rank=1536, num_attention_heads=64, num_key_value_heads=64,
                                    num_nextn_predict_layers=1, topk_method="noaux_tc", scoring_func="sigmoid", n_group=1, topk_group=1, index_head_dim=128, index_n_heads=64, index_topk=2048),
    "bert, 4 layers": {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "intermediate_size": 4096, "hidden_act": "gelu",
                       "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522, "pad_token_id": 0, "torch_dtype": "float32", "position_embedding_type": "absolute"},
    "qwen2, 4 layers": small("qwen2.5-7b", 4), "qwen3, 4 layers": small("qwen3-4b", 4), "mistral, 4 layers": small("mistral-7b", 4),
    "gemma2, 4 layers": small("gemma-2-9b", 4), "phi3, 4 layers": small("phi-3-mini", 4), "mixtral, 2 layers": small("mixtral-8x7b"),
    "qwen3-moe, 4 layers": small("qwen3-30b-a3b", 4), "deepseek-v2, 4 layers": small("deepseek-v2-lite", 4),
    "llama awq, 4 layers": small("llama-3.1-8b-awq", 4), "llama gptq, 4 layers": small("llama-3.1-8b-gptq", 4),
    "llama fp8, 4 layers": small("llama-3.1-8b-fp8", 4), "gpt-oss mxfp4, 4 layers": small("gpt-oss-20b", 4),
    "nemotron-h, 4 layers": small("nemotron-nano-9b", 4, hybrid_override_pattern="M-*-"), "qwen3-next, 4 layers": small("qwen3-next-80b", 4),
    "llama-8b": models.MODELS["llama-3.1-8b"], "llama-8b awq": models.MODELS["llama-3.1-8b-awq"], "qwen3-8b": models.MODELS["qwen3-8b"],
    "llama-1b": models.MODELS["llama-3.2-1b"], "deepseek-v2-lite": models.MODELS["deepseek-v2-lite"], "opt, 4 layers": small("opt-1.3b", 4),
}
# Kind: model, flags. Each starts with the engine's own backends, see DEFAULTS.
KINDS = {
    "dense": ("qwen3, 4 layers", []), "experts": ("qwen3-moe, 4 layers", []), "latent attention": ("deepseek-v2, 4 layers", []),
    "sparse latent attention": ("deepseek-v3.2, 4 layers", []), "sliding windows": ("small-sliding", []), "linear attention": ("qwen3-next, 4 layers", []),
    "Mamba": ("nemotron-h, 4 layers", []), "tower": ("small qwen3-vl", []), "AWQ": ("llama awq, 4 layers", []), "GPTQ": ("llama gptq, 4 layers", []),
    "FP8": ("llama fp8, 4 layers", []), "MXFP4": ("gpt-oss mxfp4, 4 layers", []), "FP8 cache": ("qwen3, 4 layers", ["--kv-cache-dtype", "fp8_e4m3"]),
    "EAGLE": ("small-llama", ["--speculative-algorithm", "EAGLE", "--speculative-draft-model-path", "small-llama's draft"] + DRAFTS),
    "EAGLE3": ("small-llama", ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "small-llama's third draft"] + DRAFTS),
    "MTP": ("deepseek-v3, 4 layers", ["--speculative-algorithm", "NEXTN"] + DRAFTS), "n-grams": ("small-llama", ["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4"]),
    "LoRA": ("small-llama", ["--enable-lora", "--max-lora-rank", "16", "--lora-target-modules", "all"]),
    "LoRA of rank 64, 4 at once": ("qwen3, 4 layers", ["--enable-lora", "--max-lora-rank", "64", "--max-loras-per-batch", "4", "--lora-target-modules", "q_proj", "v_proj"]),
}
STAGES = {"stages, dense": "qwen3, 4 layers", "stages, experts": "qwen3-moe, 4 layers", "stages, tied": "llama-1b", "stages, latent attention": "deepseek-v2, 4 layers"}
TOWERS = {"small qwen3-vl": "qwen3_vl", "small gemma3": "gemma3"}
# name, device, model, flags, more options of the dry run
STARTS = [
    ("eager", "4090", "small-llama", PLAIN),
    ("graphs of decode, with requests", "4090", "small-llama", DECODE, ["--load", "12:64-512:8"]),
    ("eager, qwen2", "4090", "qwen2, 4 layers", PLAIN),
    ("eager, qwen3", "4090", "qwen3, 4 layers", PLAIN),
    ("eager, mistral", "4090", "mistral, 4 layers", PLAIN),
    ("eager, gemma2", "4090", "gemma2, 4 layers", PLAIN),
    ("eager, phi3", "4090", "phi3, 4 layers", PLAIN),
    ("eager, experts of mixtral", "4090", "mixtral, 2 layers", PLAIN),
    ("eager, experts of qwen3", "4090", "qwen3-moe, 4 layers", PLAIN),
    ("eager, latent attention", "4090", "deepseek-v2, 4 layers", PLAIN),
    ("eager, AWQ", "4090", "llama awq, 4 layers", PLAIN),
    ("eager, GPTQ", "4090", "llama gptq, 4 layers", PLAIN),
    ("eager, FP8 checkpoint", "4090", "llama fp8, 4 layers", PLAIN),
    ("eager, FP8 weights", "4090", "small-llama", PLAIN + ["--quantization", "fp8"]),
    ("eager, FP8 cache", "4090", "small-llama", PLAIN + ["--kv-cache-dtype", "fp8_e4m3"]),
    ("eager, sliding windows", "4090", "small-sliding", PLAIN),
    ("eager, tied embeddings", "4090", "llama-1b", PLAIN),
    ("eager, opt", "4090", "opt, 4 layers", PLAIN),
    ("graphs of decode, experts", "4090", "qwen3-moe, 4 layers", DECODE),
    ("graphs of decode, latent attention", "4090", "deepseek-v2, 4 layers", DECODE),
    ("eager, FlashInfer", "4090", "small-llama", EAGER),
    ("eager, MXFP4", "4090", "gpt-oss mxfp4, 4 layers", PLAIN),
    ("eager, hybrid of Mamba", "4090", "nemotron-h, 4 layers", PLAIN),
    ("eager, hybrid of linear attention", "4090", "qwen3-next, 4 layers", PLAIN),
    ("eager, hybrid with attention beside", "4090", "falcon-h1, 4 layers", PLAIN),
    ("eager, hybrid of Granite", "4090", "granite-h, 4 layers", PLAIN),
    ("eager, hybrid of KDA", "4090", "kimi-linear, 4 layers", PLAIN),
    ("eager, hybrid of convolutions", "4090", "lfm2, 6 layers", EAGER),
    ("eager, hybrid of qwen3.5", "4090", "qwen3.5, 4 layers", PLAIN),
    ("graphs of decode, hybrid", "4090", "qwen3-next, 4 layers", DECODE),
    ("eager, hybrid, states in bfloat16", "4090", "qwen3-next, 4 layers", PLAIN + ["--mamba-ssm-dtype", "bfloat16", "--mamba-full-memory-ratio", "0.5"]),
    ("eager, hybrid, 200 slots", "4090", "nemotron-h, 4 layers", PLAIN + ["--max-mamba-cache-size", "200"]),
    ("eager, hybrid, 2 slots", "4090", "nemotron-h, 4 layers", PLAIN + ["--max-mamba-cache-size", "2"]),
    ("eager, hybrid, no radix cache", "4090", "nemotron-h, 4 layers", PLAIN + ["--disable-radix-cache", "--max-running-requests", "64"]),
    ("eager, hybrid, two ranks", "4090x2", "qwen3-next, 4 layers", PLAIN + ["--tp", "2"]),
    ("eager, tower of qwen3-vl", "4090", "small qwen3-vl", PLAIN + UNWARMED),
    ("graphs of decode, tower of qwen3-vl", "4090", "small qwen3-vl", DECODE + UNWARMED),
    ("eager, tower of gemma3", "4090", "small gemma3", PLAIN + UNWARMED + ["--enable-multimodal"]),
    ("eager, tower of gemma3 without images", "4090", "small gemma3", PLAIN + UNWARMED),
    ("eager, tower of qwen3-vl, features on the device", "4090", "small qwen3-vl", PLAIN + UNWARMED + ["--mm-feature-transport", "cuda_ipc"]),
    ("graphs of decode to 48", "4090", "small-llama", TRITON + ["--disable-prefill-cuda-graph"]),
    ("graphs of prefill and decode", "4090", "qwen3, 4 layers", TRITON + ["--cuda-graph-max-bs-prefill", "64", "--cuda-graph-max-bs-decode", "8"]),
    ("eager, n-gram drafts", "4090", "small-llama", PLAIN + ["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4"]),
    ("eager, EAGLE", "4090", "small-llama", PLAIN + ["--speculative-algorithm", "EAGLE", "--speculative-draft-model-path", "small-llama's draft"] + DRAFTS),
    ("eager, MTP", "4090", "qwen3-next, 4 layers", PLAIN + ["--speculative-algorithm", "NEXTN"] + DRAFTS),
    ("eager, MTP, 0.4", "4090", "qwen3-next, 4 layers", PLAIN + ["--speculative-algorithm", "NEXTN", "--mem-fraction-static", "0.4"] + DRAFTS),
    ("eager, EAGLE3", "4090", "small-llama", PLAIN + ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "small-llama's third draft"] + DRAFTS),
    ("eager, a small model drafts", "4090", "small-llama", PLAIN + ["--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", "llama-1b", "--context-length", "8192"] + DRAFTS),
    ("eager, MTP of deepseek", "4090", "deepseek-v3, 4 layers", PLAIN + ["--speculative-algorithm", "NEXTN"] + DRAFTS),
    ("eager, two ranks", "4090x2", "small-llama", PLAIN + ["--tp", "2"]),
    ("eager, two ranks, experts", "4090x2", "qwen3-moe, 4 layers", PLAIN + ["--tp", "2"]),
    ("eager, two ranks, latent attention", "4090x2", "deepseek-v2, 4 layers", PLAIN + ["--tp", "2"]),
    ("eager, attention replicated", "4090x2", "deepseek-v2, 4 layers", PLAIN + ["--tp", "2", "--dp-size", "2", "--enable-dp-attention"]),
    ("eager, chunk of 2,048", "L4", "small-llama", PLAIN + ["--chunked-prefill-size", "2048"]),
    ("eager, 16 requests", "L4", "qwen3, 4 layers", PLAIN + ["--max-running-requests", "16"]),
    ("eager, whole AWQ", "L4", "llama-8b awq", PLAIN),
    ("eager, fraction and context", "L40S", "small-llama", PLAIN + ["--mem-fraction-static", "0.7", "--context-length", "8192"]),
    ("eager, experts", "L40S", "small-moe", PLAIN),
    ("eager, latent attention, 12 layers", "L40S", "small-latent", PLAIN),
    ("eager, pages of 64", "L40S", "small-llama", PLAIN + ["--page-size", "64"]),
    ("eager, 20,000 tokens", "L40S", "small-llama", PLAIN + ["--max-total-tokens", "20000"]),
    ("eager, sparse latent attention", "H100", "deepseek-v3.2, 4 layers", EAGER + UNWARMED),
    ("eager, sparse latent attention, FP8 cache", "H100", "deepseek-v3.2, 4 layers", EAGER + UNWARMED + ["--kv-cache-dtype", "fp8_e4m3"]),
    ("eager, a server of decode", "4090", "small-llama", PLAIN + UNWARMED + ["--disaggregation-mode", "decode", "--disaggregation-transfer-backend", "fake", "--max-running-requests", "16"]),
    ("eager, an encoder", "4090", "bert, 4 layers", PLAIN + ["--is-embedding"]),
    ("eager, whole", "A100-40", "llama-8b", PLAIN),
    ("eager, whole, latent attention", "A100-40", "deepseek-v2-lite", PLAIN),
    ("graphs of decode, whole", "H100", "qwen3-8b", DECODE),
    ("eager, whole, 0.9", "H100", "llama-8b", PLAIN + ["--mem-fraction-static", "0.9"]),
]
STARTS += [("default, %s, %s, %s" % (way, kind, gpu), gpu, model, flags + graphs + UNWARMED)
           for way, graphs in (("eager", EAGER), ("graphs", [])) for gpu in ("4090", "H100", "B200") for kind, (model, flags) in KINDS.items()]
STARTS += [("default, graphs, whole, H100", "H100", "qwen3-8b", UNWARMED)]
STARTS += [("default, eager, %s" % kind, "4090x2", model, EAGER + UNWARMED + ["--pp-size", "2"]) for kind, model in STAGES.items()]


def tower_of(folder, name):
    """A model with a tower, its processor and tokenizer made by an engine's own transformers."""
    place = os.path.join(folder, name)
    if not os.path.isdir(place):
        newest = environments()[max(environments(), key=engines.version_key)]
        subprocess.run([os.path.join(newest, "bin", "python"), os.path.join(HERE, "vision_models.py"), folder, name], check=True, capture_output=True)
    return place


def place_of(folder, name):
    """A fixture, or a folder with a config alone, or one with a tower."""
    if name in TOWERS:
        return tower_of(folder, TOWERS[name])
    if name not in MODELS:
        return os.path.join(FIXTURES, name)
    place = os.path.join(folder, re.sub(r"\W+", "-", name))
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as f:
        json.dump(MODELS[name], f)
    return place


def words_of(folder, flags):
    """The flags with the place of a model where one is named."""
    return [place_of(folder, word) if word in MODELS else word for word in flags]


def key(record):
    return record["version"], record["name"]


def environments():
    found = {}
    for name in sorted(os.listdir(engines.VENVS)) if os.path.isdir(engines.VENVS) else []:
        if name.startswith("sglang-") and os.path.exists(os.path.join(engines.VENVS, name, "bin", "sglang")):
            found[name[7:]] = os.path.join(engines.VENVS, name)
    return found


def without_first_kernel(folder, gpu):
    """A table of devices for starts that were measured before the simulated GPU charged a first kernel: their context is smaller by as much."""
    data, name = os.path.join(HERE, "..", "..", "data"), re.sub(r"x\d+$", "", gpu.lower())
    for entry in os.listdir(data):
        if entry != "gpus":
            os.symlink(os.path.join(data, entry), os.path.join(folder, entry))
    os.mkdir(os.path.join(folder, "gpus"))
    for entry in os.listdir(os.path.join(data, "gpus")):
        with open(os.path.join(data, "gpus", entry), encoding="utf-8") as f:
            device = json.load(f)
        if name in device.get("aliases", []) and device.get("context_bytes"):
            large = device["compute_capability"] in ("7.0", "8.0", "9.0") or float(device["compute_capability"]) >= 10
            threads = 2048 if large and float(device["compute_capability"]) < 11 else 1536
            device["context_bytes"] -= min(device["sms"] * threads * 330, (100 if large else 45) << 20)
        with open(os.path.join(folder, "gpus", entry), "w", encoding="utf-8") as f:
            json.dump(device, f)
    return ["--data", folder]


def planned(binary, version, gpu, place, flags, used=0, data=()):
    out = subprocess.run([binary, "plan", "--json", "--offline", *data, "--gpu", gpu] + (["--gpu-used", "%dB" % used] if used else []) +
                         ["--engine", "sglang=" + version, "--", "sglang", "serve", "--model-path", place] + flags,
                         stdout=subprocess.PIPE, check=False).stdout
    plan = json.loads(out)
    own = (plan.get("setup") or {}).get("own") or {}
    return {"verdict": plan["verdict"], "fraction": own.get("mem_fraction_static"), "weights": plan["weights_bytes"] - plan["weights"].get("draft_param_bytes", 0) - plan["weights"].get("lora_bytes", 0), "tokens": (plan["kv"] or {}).get("tokens"),
            "graphs": round(sum(h["bytes"] for p in plan["phases"] if p["phase"] == "cudagraph_capture" for h in p["holds"] if h["owner"] == "CUDA graphs") / 2**30, 2),
            "outside": sum(h["bytes"] for p in plan["phases"] if p["phase"] == "weight_load" for h in p["holds"] if h["owner"] != "weights"),
            "peaks": {p["phase"]: sum(h["bytes"] for h in p["holds"]) for p in plan["phases"]}}


def failure(outcome):
    """The first exception of its log, one line, without paths."""
    if outcome.code == 124:
        return {"error": "stopped by the time limit of this test", "refused_calls": []}
    found = re.findall(r"^(?:\[[^]]*\] ?)?(\w+(?:\.\w+)*(?:Error|Exception)[^\n]*)", outcome.log, re.M)
    refused = (outcome.report or {}).get("refused_calls") or {}
    return {"error": re.sub(r"\S*/(\S+)", r"\1", found[0])[:160] if found else "exit %s" % outcome.code, "refused_calls": sorted(refused)[:6]}


def measured(outcome):
    report = outcome.report
    second = re.search(r"at its second look: (\d+) bytes in tensors, (\d+) in segments, (\d+) free", outcome.log)
    graphs = re.findall(r"[Cc]apture [^\n]*? end[ .][^\n]*?mem usage=([-0-9.]+) GB", outcome.log)
    told = re.search(r"free before loading (\d+) bytes, static fraction ([0-9.]+)", outcome.log)
    return {"verdict": report["verdict"], "fraction": float(told.group(2)) if told else None, "free": int(told.group(1)) if told else None,
            "graphs": round(sum(map(float, graphs)), 2), "second_look": [int(n) for n in second.groups()] if second else None, "weights": report["weights_bytes"], "tokens": report["kv"]["tokens"], "seconds": round(outcome.seconds), "refused_calls": sorted(report["refused_calls"]),
            "peaks": {p["phase"]: sum(h["bytes"] for h in p["holds"]) for p in report["phases"]}}


def start(binary, version, folder, programs, timeout, name, gpu, model, flags, options=()):
    if name.startswith("default") and engines.version_key(version) < [0, 5, 14]:
        flags = flags + PIECEWISE
    with tempfile.TemporaryDirectory() as models_folder:
        place = place_of(models_folder, model)
        words = words_of(models_folder, flags)
        outcome = engines.dryrun(binary, folder, ["--gpu", gpu, *options], ["sglang", "serve", "--model-path", place] + words,
                                 {"PATH": programs + ":" + engines.environment(folder)["PATH"]}, timeout=timeout, waits=False)
        record = {"version": version, "name": name, "gpu": gpu, "model": model, "flags": flags, "date": datetime.date.today().isoformat(), "first_kernel": True,
                  "plan": planned(binary, version, gpu, place, words)}
        keep_log(version, name, outcome)
        if not outcome.report or outcome.report["verdict"] != "fits":
            return dict(record, failed=failure(outcome))
        record["dryrun"] = measured(outcome)
        if outcome.report.get("load"):
            record["load"], record["steps"] = outcome.report["load"], outcome.report["steps"]
        record["total"] = outcome.report["gpu"]["total_bytes"]
        return beside(binary, record, place, words)


def beside(binary, record, place, flags):
    """The record with what plan says of it."""
    words = binary, record["version"], record["gpu"], place, flags
    alone = "x" not in record["gpu"] and engines.version_key(record["version"]) >= [0, 5, 8]
    with tempfile.TemporaryDirectory() as folder:
        data = without_first_kernel(folder, record["gpu"]) if alone and not record.get("first_kernel") else ()
        record["plan"] = planned(*words, data=data)
        record.setdefault("first", {"weights": record["plan"]["weights"], "tokens": record["plan"]["tokens"]})
        record.pop("given", None)
        if record.get("dryrun") and record["dryrun"]["free"]:
            used = record["total"] - record["dryrun"]["free"] - record["plan"]["outside"]
            if used >= 0:  # plan can be told of memory that is gone, not of more than it expects
                record["given"] = planned(*words, used, data)
    return record


def keep_log(version, name, outcome):
    folder = os.environ.get("OOMSIGHT_SGLANG_LOGS")
    if folder:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, re.sub(r"\W+", "-", version + " " + name) + ".log"), "w", encoding="utf-8") as f:
            f.write(outcome.log + "\n" + json.dumps(outcome.report))


def cell(value, scale=1, form="%.3f"):
    return "-" if value is None else form % (value / scale)


def off(mine, theirs):
    return "-" if not mine or not theirs else "%+.2f %%" % (100 * (mine - theirs) / theirs)


def summary(records):
    """How far they are apart, in one sentence."""
    started = [(r["dryrun"], r["plan"], r.get("given") or {}) for r in records if "dryrun" in r]
    tokens = [abs(plan["tokens"] / dry["tokens"] - 1) for dry, plan, _ in started if plan["tokens"]]
    given = [abs(again["tokens"] / dry["tokens"] - 1) for dry, _, again in started if again.get("tokens")]
    peaks = [abs(plan["peaks"][busiest(dry)] / dry["peaks"][busiest(dry)] - 1) for dry, plan, _ in started if busiest(dry) in plan["peaks"]]
    heavier = [abs(plan["weights"] - dry["weights"]) for dry, plan, _ in started]
    return ("The static fraction is equal in %d of %d, weights to the byte in %d and within 1 MiB in %d; tokens are within 0.1 %% in %d of %d and at most %.2f %% off (the others: `plan` "
            "says that it can't tell), given the free memory within 0.1 %% in %d of %d; the busiest instant is at most %.1f %% off." % (
                sum(dry["fraction"] == plan["fraction"] for dry, plan, _ in started), len(started), heavier.count(0), sum(h <= 2**20 for h in heavier),
                sum(t <= 0.001 for t in tokens), len(tokens), 100 * max(tokens, default=0), sum(g <= 0.001 for g in given), len(given), 100 * max(peaks, default=0)))


def busiest(dry):
    """The phase of a start in which most is held."""
    return max((p for p in dry["peaks"] if not p.startswith("runtime")), key=lambda p: dry["peaks"][p])


def table(records):
    lines = ["| release | start | fraction | weights, planned GiB | tokens, planned | off | given the free memory | busiest while starting, planned GiB |",
             "| --- | --- | --: | --: | --: | --: | --: | --: |"]
    failed = []
    for record in records:
        dry, plan, given = record.get("dryrun"), record["plan"], record.get("given") or {}
        if not dry:
            failed.append("- %s, %s (%s, `%s`), %s: %s%s" % (
                record["version"], record["name"], record["model"], " ".join(record["flags"]), record["date"], record["failed"]["error"],
                "; refused: " + ", ".join(record["failed"]["refused_calls"]) if record["failed"]["refused_calls"] else ""))
            continue
        peak = busiest(dry)
        lines.append("| %s | %s (`%s`, %s) | %s, %s | %s, %s | %s, %s | %s | %s | %s, %s (%s) |" % (
            record["version"], record["name"], record["model"], record["gpu"], cell(dry["fraction"]), cell(plan["fraction"]),
            cell(dry["weights"], 2**30, "%.4f"), cell(plan["weights"], 2**30, "%.4f"), cell(dry["tokens"], 1, "%d"), cell(plan["tokens"], 1, "%d"),
            off(plan["tokens"], dry["tokens"]), off(given.get("tokens"), dry["tokens"]), cell(dry["peaks"][peak], 2**30, "%.2f"),
            cell(plan["peaks"].get(peak), 2**30, "%.2f"), peak))
    dates = sorted({r["date"] for r in records})
    count = sum(1 for r in records if "dryrun" in r)
    head = ["%d of %d starts came to their end (%s)." % (count, len(records), " to ".join(dates[:1] + dates[1:][-1:])), summary(records), ""]
    return head + lines + ([""] + ["Not started:", ""] + failed if failed else [])


def started(binary, version, folder, gpu, cases, timeout):
    """The starts on one device from one process; others get their turn between them."""
    with contextlib.ExitStack() as stack:
        programs = None
        while cases:
            with engines.turn():
                end = time.time() + TURN_SECONDS
                programs = programs or stack.enter_context(forked.Engine(binary, folder, engines.environment(folder), gpu, IMPORTED))
                yield start(binary, version, folder, programs, timeout, *cases.pop(0))
                while cases and time.time() < end:
                    yield start(binary, version, folder, programs, timeout, *cases.pop(0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--replan", action="store_true", help="plan again, beside the starts that there are")
    parser.add_argument("--only", help="starts whose name matches")
    parser.add_argument("--results", default=os.path.join(HERE, "sglang.jsonl"))
    parser.add_argument("--timeout", type=int, default=240)
    args = parser.parse_intermixed_args()
    binary, found = os.path.abspath(args.binary), environments()
    records = engines.read_results(args.results, key)
    if not found and not records:
        return engines.SKIP
    for version in args.versions:
        wanted = {}
        for case in STARTS:
            if version in found and not (args.missing and (version, case[0]) in records) and (not args.only or re.search(args.only, case[0])):
                wanted.setdefault(case[1], []).append(case)
        for gpu, cases in wanted.items():
            for record in started(binary, version, found[version], gpu, cases, args.timeout):
                records[version, record["name"]] = record
                print(version, record["name"], record.get("failed") or record["dryrun"]["tokens"], flush=True)
                with open(args.results, "w", encoding="utf-8") as f:
                    f.writelines(json.dumps(r) + "\n" for r in records.values())
    if args.replan:
        with tempfile.TemporaryDirectory() as folder:
            for record in records.values():
                beside(binary, record, place_of(folder, record["model"]), words_of(folder, record["flags"]))
        with open(args.results, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r) + "\n" for r in records.values())
    print("\n".join(table(list(records.values()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
