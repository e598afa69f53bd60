"""Model directories for dry runs: a config with the public geometry and nothing else. Weights are dummies by then."""
import json
import os


def opt(hidden, layers, heads):
    return {"architectures": ["OPTForCausalLM"], "model_type": "opt", "activation_function": "relu", "hidden_size": hidden,
            "word_embed_proj_dim": hidden, "ffn_dim": 4 * hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "max_position_embeddings": 2048, "vocab_size": 50272, "do_layer_norm_before": True, "pad_token_id": 1,
            "bos_token_id": 2, "eos_token_id": 2, "torch_dtype": "float16"}


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


W4A16 = {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
         "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
             "num_bits": 4, "type": "int", "symmetric": True, "group_size": 32, "strategy": "group", "dynamic": False}}},
         "ignore": ["lm_head", "re:.*visual.*", "re:.*mtp.*", "re:.*in_proj_a$", "re:.*in_proj_b$", "re:.*in_proj_ba$"]}
AUTOROUND = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True, "data_type": "int",
             "packing_format": "auto_round:auto_gptq", "block_name_to_quantize": "model.language_model.layers,mtp.layers",
             "extra_config": {"model.language_model.layers.%d.linear_attn.in_proj_%s" % (i, part): {"bits": 16, "data_type": "fp"}
                              for i in range(64) if i % 4 != 3 for part in "ab"}}

MODELS = {
    "opt-125m": opt(768, 12, 12),
    "opt-1.3b": opt(2048, 24, 32),
    "opt-2.7b": opt(2560, 32, 32),
    "qwen3-30b-a3b": qwen3_moe(48, 128, 2048, 768, 32, 4),
    "qwen3-235b-a22b": qwen3_moe(94, 128, 4096, 1536, 64, 4),
    # one rank of four, every parameter as large as there
    "qwen3-235b-a22b-rank": qwen3_moe(94, 128, 4096, 384, 16, 1, 37984),
    "qwen3.6-27b-w4a16": qwen36_27b(W4A16),
    "qwen3.6-27b-autoround": qwen36_27b(AUTOROUND),
}


def write(folder, name):
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
        json.dump(MODELS[name], f)
    return path
