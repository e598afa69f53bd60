#!/usr/bin/env python3
"""Every text class of the engine's registry, built by the engine itself on the meta device, beside the plan.

    oomsight dryrun --gpu h100 -- ENV/bin/python tests/oracle/registry.py build OUT.jsonl [--models DIR] [--only CLASS]
    python3 tests/oracle/registry.py count BINARY OUT.jsonl [--json]

`build` needs an environment with vLLM and no GPU. A class is built with the defaults of its config class in transformers or vLLM, six
layers, or, where there is none, with a config of CONFIGS below or with one found in DIR (directories with a config.json, read as not
quantised); the bytes of its parameters on one rank are written down with the config. `count` plans each config and says how many classes are
exact (every byte), read by common fields (the class is not known), different, and how many could not be built and why.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

LAYERS = 6

# Classes whose config comes with the checkpoint: the smallest published geometry, or one like it.
BASE = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": LAYERS, "num_attention_heads": 16, "num_key_value_heads": 4,
        "vocab_size": 32000, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "layer_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5,
        "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2,
        "attention_bias": False, "mlp_bias": False}
MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "norm_topk_prob": True, "n_group": 1, "topk_group": 1,
       "routed_scaling_factor": 1.0, "first_k_dense_replace": 1, "num_shared_experts": 1}
CONFIGS = {
    "BailingMoeForCausalLM": dict(MOE, model_type="bailing_moe", head_dim=64, use_bias=False, use_qkv_bias=False, score_function=None, embedding_dropout=0.0),
    "BailingMoeV2ForCausalLM": dict(MOE, model_type="bailing_moe_v2", head_dim=64, use_bias=False, use_qkv_bias=False, use_qk_norm=True, use_rmsnorm=True,
                                    moe_router_enable_expert_bias=True, score_function="sigmoid", router_dtype="fp32", embedding_dropout=0.0,
                                    moe_shared_expert_intermediate_size=512),
    "ExaoneForCausalLM": {"model_type": "exaone", "num_layers": LAYERS, "activation_function": "silu"},
    "HyperCLOVAXForCausalLM": {"model_type": "hyperclovax", "use_post_norm": True},
    "InternLM2ForCausalLM": {"model_type": "internlm2", "bias": False},
    "InternLM3ForCausalLM": {"model_type": "internlm3", "bias": False, "qkv_bias": False},
    "IQuestCoderForCausalLM": {"model_type": "iquestcoder"},
    "MiniCPMForCausalLM": {"model_type": "minicpm", "scale_emb": 12, "dim_model_base": 256, "scale_depth": 1.4},
    "MiMoForCausalLM": {"model_type": "mimo", "attention_bias": True, "num_nextn_predict_layers": 1},
    "OrionForCausalLM": {"model_type": "orion"},
    "PanguEmbeddedForCausalLM": {"model_type": "PanguEmbedded", "bias": True},
    "PanguProMoEV2ForCausalLM": dict(MOE, model_type="PanguProMoE"),
    "Param2MoEForCausalLM": dict(MOE, model_type="param2moe", head_dim=64, use_qk_norm=True),
    "TeleChat2ForCausalLM": {"model_type": "telechat", "n_layer": LAYERS, "n_head": 16, "ffn_hidden_size": 2816},
    "TeleChat3ForCausalLM": {"model_type": "telechat3"},
    "TeleFLMForCausalLM": {"model_type": "teleflm", "use_mup": False},
    "SolarForCausalLM": {"model_type": "solar", "bskcn_1": [1], "bskcn_2": [2], "bskcn_3": [3], "bskcn_4": [4], "bskcn_tv": [0.9, 0.8]},
    "Step1ForCausalLM": {"model_type": "step1", "num_attention_groups": 4},
    "AfmoeForCausalLM": dict(MOE, model_type="afmoe_2", score_func="sigmoid", route_norm=True, route_scale=1.0, num_dense_layers=1, head_dim=64, sliding_window=1024,
                             layer_types=["sliding_attention"] * 3 + ["full_attention"] + ["sliding_attention"] * 2, mup_enabled=False,
                             rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
    "LLaMAForCausalLM": {"model_type": "llama"},
    "PhiMoEForCausalLM": {"model_type": "phimoe", "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": True, "lm_head_bias": True,
                          "sliding_window": 2047, "router_jitter_noise": 0.01, "input_jitter_noise": 0.01},
    "NemotronForCausalLM": {"model_type": "nemotron", "hidden_act": "relu2", "norm_eps": 1e-5, "partial_rotary_factor": 0.5, "head_dim": 64},
    "Lfm2ForCausalLM": {"model_type": "lfm2", "block_dim": 1024, "conv_dim": 1024, "conv_L_cache": 3, "conv_bias": False, "block_ff_dim": 2816, "norm_eps": 1e-5,
                        "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True, "tie_word_embeddings": True,
                        "layer_types": ["conv", "conv", "full_attention"] * 2, "full_attn_idxs": [2, 5]},
    "Llama4ForCausalLM": {"model_type": "llama4_text", "num_local_experts": 4, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "head_dim": 64,
                          "intermediate_size_mlp": 4096, "attention_chunk_size": 2048, "no_rope_layers": [1, 1, 1, 0, 1, 1], "use_qk_norm": True,
                          "moe_layers": [1, 3, 5], "attn_temperature_tuning": False},
    "Lfm2MoeForCausalLM": dict(MOE, model_type="lfm2_moe_2", conv_L_cache=3, conv_bias=False, norm_eps=1e-5, num_dense_layers=2, use_expert_bias=True,
                               tie_word_embeddings=True, layer_types=["conv", "conv", "full_attention"] * 2),
    "BloomForCausalLM": {"model_type": "bloom", "n_layer": LAYERS, "n_head": 16, "num_key_value_heads": 16, "tie_word_embeddings": True,
                         "apply_residual_connection_post_layernorm": False},
    "ChatGLMModel": {"model_type": "chatglm", "num_layers": LAYERS, "original_rope": False, "padded_vocab_size": 32128, "ffn_hidden_size": 2816, "multi_query_attention": True,
                     "multi_query_group_num": 2, "add_qkv_bias": True, "kv_channels": 64, "seq_length": 4096},
    "ChatGLMForConditionalGeneration": {"model_type": "chatglm", "num_layers": LAYERS, "original_rope": False, "padded_vocab_size": 32128, "ffn_hidden_size": 2816,
                                        "multi_query_attention": True, "multi_query_group_num": 2, "add_bias_linear": True, "kv_channels": 64,
                                        "seq_length": 4096, "rmsnorm": False},
    "DbrxForCausalLM": {"model_type": "dbrx", "d_model": 1024, "n_heads": 16, "n_layers": LAYERS, "max_seq_len": 4096,
                        "attn_config": {"kv_n_heads": 4, "rope_theta": 10000}, "ffn_config": {"ffn_hidden_size": 512, "moe_num_experts": 4, "moe_top_k": 2}},
    "IQuestLoopCoderForCausalLM": {"model_type": "iquestloopcoder", "loop_num": 2},
    "MiniCPM3ForCausalLM": {"model_type": "minicpm3", "scale_emb": 12, "dim_model_base": 256, "scale_depth": 1.4, "q_lora_rank": 768, "kv_lora_rank": 256,
                            "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "num_key_value_heads": 16},
    "HYV3ForCausalLM": dict(MOE, model_type="hy_v3_2", head_dim=64, route_norm=True, expert_hidden_dim=512, qk_norm=True),
    "Plamo3ForCausalLM": {"model_type": "plamo3", "head_dim": 64, "sliding_window": 1024, "window_size": 1024, "rope_local_theta": 10000,
                          "interleaved_sliding_window": [1024, None] * 3, "layer_types": ["sliding_attention", "full_attention"] * 3},
    "Rnj1ForCausalLM": {"model_type": "rnj1", "head_dim": 64, "query_pre_attn_scalar": 64, "sliding_window": 1024, "final_logit_softcapping": None,
                        "attn_logit_softcapping": None, "hidden_activation": "gelu_pytorch_tanh", "layer_types": ["full_attention"] * LAYERS},
    "GraniteMoeSWAForCausalLM": {"model_type": "granitemoeswa", "num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 512,
                                 "attention_multiplier": 1.0, "embedding_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0},
    "GraniteSWAForCausalLM": {"model_type": "graniteswa", "attention_multiplier": 1.0, "embedding_multiplier": 1.0, "residual_multiplier": 1.0,
                              "logits_scaling": 1.0},
    "ExaoneMoEForCausalLM": dict(MOE, model_type="exaone_moe_2", head_dim=64, sliding_window=1024, sliding_window_pattern="LLLG", mlp_layer_types=["dense"] + ["sparse"] * 5,
                                 layer_types=["sliding_attention"] * 3 + ["full_attention"] + ["sliding_attention"] * 2),
    "DeepseekForCausalLM": dict(MOE, model_type="deepseek", n_routed_experts=8, n_shared_experts=1, moe_layer_freq=1, scoring_func="softmax"),
    "SarvamMoEForCausalLM": dict(MOE, model_type="sarvam_moe", head_dim=64, use_bias=False, use_qkv_bias=False, score_function=None, embedding_dropout=0.0),
}

# Two names of one class: what one was built with serves the other.
SAME = {"MiMoV2ForCausalLM": "MiMoV2FlashForCausalLM", "ExaoneMoEForCausalLM": "ExaoneMoeForCausalLM", "MistralLarge3ForCausalLM": "DeepseekV3ForCausalLM"}


# ---- the engine's side ----

def text_classes():
    from vllm.model_executor.models import registry
    return registry._TEXT_GENERATION_MODELS


def by_transformers(name):
    """A config of transformers or of vLLM for the class, with six layers where it takes the word."""
    from transformers.models.auto import configuration_auto, modeling_auto
    kinds = [kind for kind, classes in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()
             if name in (classes if isinstance(classes, (tuple, list)) else (classes,))]
    for kind in kinds:
        cls = configuration_auto.CONFIG_MAPPING[kind]
        for more in ({"num_hidden_layers": LAYERS}, {"n_layer": LAYERS}, {}):
            try:
                config = json.loads(cls(**more).to_json_string(use_diff=False))
            except Exception:  # a config class that wants more than that
                continue
            config.update(architectures=[name], model_type=kind)
            return config
    return None


def found_in(folder):
    configs = {}
    for path in sorted(glob.glob(os.path.join(folder, "*", "config.json"))) if folder else []:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config.pop("quantization_config", None)
        if config.get("architectures"):
            configs.setdefault(config["architectures"][0], config)
    return configs


def configs_for(name, found):
    if name in CONFIGS:
        yield "by hand", dict(BASE, **CONFIGS[name], architectures=[name])
    if name in found:
        yield "published", found[name]
    config = by_transformers(name)
    if config:
        yield "class defaults", config
    if name in SAME:
        for origin, config in configs_for(SAME[name], found):
            yield origin, dict(config, architectures=[name])


def register(config):
    """A config class for a model_type that transformers does not have: just its fields."""
    import transformers
    kind = config.get("model_type", "unknown")
    try:
        transformers.AutoConfig.register(kind, type("Fields", (transformers.PretrainedConfig,), {"model_type": kind}))
    except ValueError:  # it has one
        pass


def parameters(config, device="meta", **more):
    """Bytes of the parameters of the engine's class, on one rank."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.distributed import parallel_state
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        args = EngineArgs(model=folder, skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, dtype="bfloat16", max_model_len=1024,
                          **more)
        vllm_config = args.create_engine_config()
        with set_current_vllm_config(vllm_config):
            if not torch.distributed.is_initialized():
                parallel_state.init_distributed_environment(1, 0, "tcp://127.0.0.1:29573", 0, "gloo")
            parallel_state.initialize_model_parallel(1, 1)
            try:
                with set_default_torch_dtype(torch.bfloat16), torch.device(device):
                    model = initialize_model(vllm_config)
            finally:
                parallel_state.destroy_model_parallel()
        rows = {key: [list(p.shape), str(p.dtype).split(".")[1]] for key, p in model.named_parameters()}
        return sum(p.numel() * p.element_size() for p in model.parameters()), rows


def build(args):
    from vllm.model_executor.models import registry
    registry._run_in_subprocess = lambda function: function()  # a process for each class would import the engine each time
    found = found_in(args.models)
    with open(args.out, "w", encoding="utf-8") as out:
        for name in sorted(text_classes()):
            if args.only and name not in args.only:
                continue
            record = {"class": name, "problem": "no config"}
            for origin, config in configs_for(name, found):
                config = {key: value for key, value in config.items() if key not in ("dtype", "auto_map")}
                config["torch_dtype"] = "bfloat16"
                register(config)
                try:
                    # slopes and the numbers of an activation are computed from values: such a class is built in host memory
                    slopes = name in ("ApertusForCausalLM", "BloomForCausalLM", "Step1ForCausalLM")
                    more = {"attention_backend": "TRITON_ATTN"} if name == "Step1ForCausalLM" else {}
                    total, rows = parameters(config, "cpu" if slopes else "meta", **more)
                    record = {"class": name, "origin": origin, "config": config, "bytes": total, "rows": rows}
                    break
                except BaseException as error:  # the engine's word on why
                    if "origin" in record:
                        continue
                    record = {"class": name, "origin": origin, "problem": ("%s: %s" % (type(error).__name__, error))[:300]}
            print(name, record.get("bytes", record.get("problem")), flush=True)
            out.write(json.dumps(record) + "\n")
            out.flush()


# ---- our side ----

def planned(binary, config):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        run = subprocess.run([binary, "plan", "--json", "--gpu", "h200", "--vllm", "0.32.0", "--", "vllm", "serve", folder, "--max-model-len", "1024",
                              "--enforce-eager"], capture_output=True, text=True)
    try:
        plan = json.loads(run.stdout)
    except ValueError:
        return None, run.stderr.strip()
    known = not any("is not known" in note for note in plan.get("notes", []))
    return plan["weights"]["param_bytes"][0], "known" if known else "common"


def count(args):
    sums = {"exact": [], "differs": [], "common fields": [], "not built": []}
    with open(args.out, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if "bytes" not in record:
                sums["not built"].append((record["class"], record["problem"]))
                continue
            ours, word = planned(args.binary, record["config"])
            if ours == record["bytes"] and word == "known":
                sums["exact"].append((record["class"], ""))
            else:
                kind = "common fields" if word == "common" else "differs"
                sums[kind].append((record["class"], "%s, engine %d: %+d" % (ours, record["bytes"], (ours or 0) - record["bytes"])))
    built = sum(len(sums[kind]) for kind in ("exact", "differs", "common fields"))
    if args.json:
        print(json.dumps({kind: [name for name, _ in rows] for kind, rows in sums.items()}, indent=1))
    else:
        for kind, rows in sums.items():
            for name, why in rows:
                if kind != "exact":
                    print("%-14s %-34s %s" % (kind, name, why))
        print("%d classes: %d built, %d exact, %d differ, %d by common fields, %d not built"
              % (built + len(sums["not built"]), built, len(sums["exact"]), len(sums["differs"]), len(sums["common fields"]), len(sums["not built"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("build")
    part.add_argument("out")
    part.add_argument("--models")
    part.add_argument("--only", action="append")
    part.set_defaults(run=build)
    part = parts.add_parser("count")
    part.add_argument("binary")
    part.add_argument("out")
    part.add_argument("--json", action="store_true")
    part.set_defaults(run=count)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    sys.exit(main())
