"""Model directories for dry runs: a config with the public geometry and nothing else. Weights are dummies by then."""
import copy
import json
import os


def opt(hidden, layers, heads):
    return {"architectures": ["OPTForCausalLM"], "model_type": "opt", "activation_function": "relu", "hidden_size": hidden,
            "word_embed_proj_dim": hidden, "ffn_dim": 4 * hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "max_position_embeddings": 2048, "vocab_size": 50272, "do_layer_norm_before": True, "pad_token_id": 1,
            "bos_token_id": 2, "eos_token_id": 2, "torch_dtype": "float16"}


def dense(architecture, kind, hidden, layers, heads, kv_heads, intermediate, vocab, **more):
    """The families that differ in a few keys only: Llama, Mistral, Qwen, Phi, Gemma."""
    config = {"architectures": [architecture], "model_type": kind, "hidden_size": hidden, "num_hidden_layers": layers,
              "num_attention_heads": heads, "num_key_value_heads": kv_heads, "intermediate_size": intermediate,
              "vocab_size": vocab, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e6,
              "max_position_embeddings": 32768, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1,
              "eos_token_id": 2}
    config.update(more)
    return config


def llama_8b(**more):
    return dense("LlamaForCausalLM", "llama", 4096, 32, 32, 8, 14336, 128256, max_position_embeddings=131072,
                 rope_theta=500000.0, **more)


def nemotron_h(pattern):
    """Hybrid: one letter a layer, M for Mamba 2, - for an MLP, * for attention."""
    return {"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "hybrid_override_pattern": pattern,
            "num_hidden_layers": len(pattern), "hidden_size": 4480, "intermediate_size": 15680, "num_attention_heads": 40,
            "num_key_value_heads": 8, "head_dim": 128, "mamba_num_heads": 128, "mamba_head_dim": 80, "ssm_state_size": 128,
            "n_groups": 8, "conv_kernel": 4, "chunk_size": 128, "expand": 2, "mamba_hidden_act": "silu",
            "mlp_hidden_act": "relu2", "attention_bias": False, "mlp_bias": False, "mamba_proj_bias": False, "use_bias": False,
            "use_conv_bias": True, "time_step_min": 0.001, "time_step_max": 0.1, "time_step_floor": 1e-4, "time_step_rank": 256,
            "layer_norm_epsilon": 1e-5, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "residual_in_fp32": False,
            "num_logits_to_keep": 1, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": 131072,
            "bos_token_id": 1, "eos_token_id": 12, "pad_token_id": 0}


def jamba():
    """Hybrid with experts: attention in one layer of eight, Mamba 1 in the others, experts in every second."""
    return {"architectures": ["JambaForCausalLM"], "model_type": "jamba", "attn_layer_offset": 4, "attn_layer_period": 8,
            "expert_layer_offset": 1, "expert_layer_period": 2, "hidden_act": "silu", "hidden_size": 4096,
            "intermediate_size": 14336, "mamba_conv_bias": True, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256,
            "mamba_expand": 2, "mamba_proj_bias": False, "max_position_embeddings": 262144, "num_attention_heads": 32,
            "num_experts": 16, "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
            "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_mamba_kernels": True,
            "vocab_size": 65536, "bos_token_id": 1, "eos_token_id": 2}


def qwen3_next():
    return {"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48,
            "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
            "intermediate_size": 5120, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
            "num_experts": 512, "num_experts_per_tok": 10, "decoder_sparse_step": 1, "mlp_only_layers": [],
            "norm_topk_prob": True, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
            "linear_num_key_heads": 16, "linear_num_value_heads": 32, "partial_rotary_factor": 0.25, "rope_theta": 1e7,
            "hidden_act": "silu", "rms_norm_eps": 1e-6, "max_position_embeddings": 262144, "tie_word_embeddings": False,
            "torch_dtype": "bfloat16", "vocab_size": 151936, "bos_token_id": 1, "eos_token_id": 2}


def deepseek_v2_lite():
    """Latent attention; 64 experts beside two shared ones, the first layer dense."""
    return {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 2048,
            "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
            "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
            "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_group": 1, "topk_group": 1, "topk_method": "greedy",
            "scoring_func": "softmax", "norm_topk_prob": False, "routed_scaling_factor": 1.0, "attention_bias": False,
            "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000, "max_position_embeddings": 163840,
            "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32,
                             "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707},
            "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": 102400, "bos_token_id": 1,
            "eos_token_id": 2}


def gpt_oss():
    """Experts in MXFP4; every second layer looks back 128 tokens only."""
    return {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
            "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
            "num_local_experts": 32, "num_experts_per_tok": 4, "experts_per_token": 4, "attention_bias": True,
            "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 12, "swiglu_limit": 7.0,
            "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 150000, "max_position_embeddings": 131072,
            "initial_context_length": 4096,
            "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0,
                             "beta_slow": 1.0, "truncate": False},
            "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
                "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]},
            "tie_word_embeddings": False, "vocab_size": 201088, "eos_token_id": 2, "pad_token_id": 0}


def qwen3_moe(layers, experts, hidden, moe_intermediate, heads, kv_heads, vocab=151936):
    return {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": hidden, "head_dim": 128,
            "intermediate_size": 3 * hidden, "moe_intermediate_size": moe_intermediate, "num_experts": experts,
            "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "hidden_act": "silu",
            "rms_norm_eps": 1e-6, "rope_theta": 1e6, "max_position_embeddings": 40960, "vocab_size": vocab,
            "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 2}


def qwen36_27b(quantization):
    """Hybrid: three of four layers are Gated DeltaNet; one MTP layer; a vision tower that --language-model-only leaves out."""
    kinds = (["linear_attention"] * 3 + ["full_attention"]) * 16
    text = {"model_type": "qwen3_5_text", "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64,
            "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256, "layer_types": kinds,
            "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
            "linear_num_key_heads": 16, "linear_num_value_heads": 48, "mamba_ssm_dtype": "float32", "attn_output_gate": True,
            "attention_bias": False, "hidden_act": "silu", "rms_norm_eps": 1e-6, "max_position_embeddings": 262144,
            "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False, "partial_rotary_factor": 0.25,
            "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25,
                                "rope_theta": 10000000, "rope_type": "default"},
            "tie_word_embeddings": False, "vocab_size": 248320, "dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 2}
    vision = {"model_type": "qwen3_5", "depth": 27, "hidden_size": 1152, "num_heads": 16, "intermediate_size": 4304,
              "out_hidden_size": 5120, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3,
              "num_position_embeddings": 2304, "deepstack_visual_indexes": [], "hidden_act": "gelu_pytorch_tanh"}
    return {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "text_config": text,
            "vision_config": vision, "tie_word_embeddings": False, "image_token_id": 248056, "video_token_id": 248057,
            "vision_start_token_id": 248053, "vision_end_token_id": 248054, "quantization_config": quantization}


def llava():
    """A tower of two layers that sees 336 x 336 pixels in patches of 14, so 576 tokens an image."""
    text = dense("LlamaForCausalLM", "llama", 512, 2, 8, 4, 1024, 50272, max_position_embeddings=4096)
    vision = {"model_type": "clip_vision_model", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
              "image_size": 336, "patch_size": 14, "projection_dim": 256}
    return {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "image_token_index": 1023, "image_seq_length": 576,
            "projector_hidden_act": "gelu", "vision_feature_layer": -2, "vision_feature_select_strategy": "default", "text_config": text,
            "vision_config": vision, "torch_dtype": "bfloat16", "tie_word_embeddings": False, "vocab_size": 50272}


W4A16 = {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
         "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
             "num_bits": 4, "type": "int", "symmetric": True, "group_size": 32, "strategy": "group", "dynamic": False}}},
         "ignore": ["lm_head", "re:.*visual.*", "re:.*mtp.*", "re:.*in_proj_a$", "re:.*in_proj_b$", "re:.*in_proj_ba$"]}
AUTOROUND = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True, "data_type": "int",
             "packing_format": "auto_round:auto_gptq", "block_name_to_quantize": "model.language_model.layers,mtp.layers",
             "extra_config": {"model.language_model.layers.%d.linear_attn.in_proj_%s" % (i, part): {"bits": 16, "data_type": "fp"}
                              for i in range(64) if i % 4 != 3 for part in "ab"}}

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True, "checkpoint_format": "gptq"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
FP8 = {"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
       "ignore": ["lm_head"], "config_groups": {"group_0": {
           "targets": ["Linear"], "output_activations": None,
           "weights": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False},
           "input_activations": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True}}}}

MODELS = {
    "opt-125m": opt(768, 12, 12),
    # two layers each, for requests
    "opt-tiny": opt(256, 2, 4),
    "moe-tiny": qwen3_moe(2, 8, 256, 128, 4, 2, 50272),
    "mla-tiny": dict(deepseek_v2_lite(), num_hidden_layers=2, hidden_size=512, intermediate_size=1024, moe_intermediate_size=256, n_routed_experts=8,
                     num_attention_heads=4, num_key_value_heads=4, vocab_size=50272),
    "hybrid-tiny": dict(nemotron_h("M*-"), vocab_size=50272),
    "gptq-tiny": dense("LlamaForCausalLM", "llama", 512, 2, 8, 4, 1024, 50272, quantization_config=GPTQ),
    "llama-tiny": dense("LlamaForCausalLM", "llama", 512, 2, 8, 4, 1024, 50272),
    "eagle-tiny": dense("LlamaForCausalLM", "llama", 512, 1, 8, 4, 1024, 50272),
    "mtp-tiny": dense("MiMoForCausalLM", "mimo", 512, 2, 8, 4, 1024, 50272, num_nextn_predict_layers=1),
    "llava-tiny": llava(),
    "llama-3.1-8b": llama_8b(),
    "llama-3.1-8b-gptq": llama_8b(quantization_config=GPTQ),
    "llama-3.1-8b-awq": llama_8b(quantization_config=AWQ),
    "llama-3.1-8b-fp8": llama_8b(quantization_config=FP8),
    "llama-3.2-1b": dense("LlamaForCausalLM", "llama", 2048, 16, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True),
    "mistral-7b": dense("MistralForCausalLM", "mistral", 4096, 32, 32, 8, 14336, 32768, sliding_window=None),
    "qwen2.5-1.5b": dense("Qwen2ForCausalLM", "qwen2", 1536, 28, 12, 2, 8960, 151936, tie_word_embeddings=True),
    "qwen2.5-7b": dense("Qwen2ForCausalLM", "qwen2", 3584, 28, 28, 4, 18944, 152064),
    "qwen3-0.6b": dense("Qwen3ForCausalLM", "qwen3", 1024, 28, 16, 8, 3072, 151936, head_dim=128, tie_word_embeddings=True),
    "qwen3-4b": dense("Qwen3ForCausalLM", "qwen3", 2560, 36, 32, 8, 9728, 151936, head_dim=128, tie_word_embeddings=True,
                      max_position_embeddings=40960),
    "qwen3-8b": dense("Qwen3ForCausalLM", "qwen3", 4096, 36, 32, 8, 12288, 151936, head_dim=128),
    "phi-3-mini": dense("Phi3ForCausalLM", "phi3", 3072, 32, 32, 32, 8192, 32064, max_position_embeddings=4096,
                        original_max_position_embeddings=4096, rope_theta=10000.0, pad_token_id=0),
    "gemma-2-9b": dense("Gemma2ForCausalLM", "gemma2", 3584, 42, 16, 8, 14336, 256000, head_dim=256,
                        hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256,
                        sliding_window=4096, final_logit_softcapping=30.0, attn_logit_softcapping=50.0,
                        max_position_embeddings=8192, rope_theta=10000.0, pad_token_id=0, tie_word_embeddings=True),
    "mixtral-8x7b": dense("MixtralForCausalLM", "mixtral", 4096, 32, 32, 8, 14336, 32000, num_local_experts=8,
                          num_experts_per_tok=2, sliding_window=None),
    "nemotron-nano-9b": nemotron_h("M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"),
    "jamba-mini": jamba(),
    "qwen3-next-80b": qwen3_next(),
    "deepseek-v2-lite": deepseek_v2_lite(),
    "gpt-oss-20b": gpt_oss(),
    "opt-1.3b": opt(2048, 24, 32),
    "opt-2.7b": opt(2560, 32, 32),
    "qwen3-30b-a3b": qwen3_moe(48, 128, 2048, 768, 32, 4),
    "qwen3-235b-a22b": qwen3_moe(94, 128, 4096, 1536, 64, 4),
    # one rank of four, every parameter as large as there
    "qwen3-235b-a22b-rank": qwen3_moe(94, 128, 4096, 384, 16, 1, 37984),
    "qwen3.6-27b-w4a16": qwen36_27b(W4A16),
    "qwen3.6-27b-autoround": qwen36_27b(AUTOROUND),
}


def small(name, layers=2, **more):
    """The geometry of a model with fewer layers and experts."""
    config = copy.deepcopy(MODELS[name])
    config["num_hidden_layers"] = layers
    if "layer_types" in config:
        config["layer_types"] = config["layer_types"][:layers]
    for key in ("num_experts", "n_routed_experts", "num_local_experts"):
        if key in config:
            config[key] = min(config[key], 16)
    config.update(more)
    return config


def write(folder, name):
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
        json.dump(MODELS[name], f)
    return path
