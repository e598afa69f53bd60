"""Folders of small models that take images or sound, with processors and tokenizers made by the engine's own transformers.

    PYTHON tests/oracle/vision_models.py FOLDER NAME...     llava qwen3_vl gemma3 whisper"""
import json
import os
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
import transformers

TEMPLATE = "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}{% else %}IMAGE{% endif %}{% endfor %}{% endif %} {% endfor %}"


def tokenizer(vocab, special, image, **more):
    names = {i: n for n, i in special.items()}
    lines = {1970: "\n", 1971: "\n\n", 1972: "\n\n\n", 1973: "\n\n\n\n"}  # Gemma 3 joins them
    words = {names.get(i) or lines.get(i) or "w%d" % i: i for i in range(vocab)}
    t = Tokenizer(models.WordLevel(words, unk_token="w0"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=t, unk_token="w0", bos_token="w1", eos_token="w2", pad_token="w3", **more)
    fast.add_special_tokens({"additional_special_tokens": list(special)})
    fast.chat_template = TEMPLATE.replace("IMAGE", image)
    return fast


def llava(folder):
    t = tokenizer(2000, {"<image>": 1999}, "<image>")
    p = transformers.LlavaProcessor(image_processor=transformers.CLIPImageProcessor(size={"shortest_edge": 336}, crop_size={"height": 336, "width": 336}), tokenizer=t, patch_size=14, vision_feature_select_strategy="default", image_token="<image>", num_additional_image_tokens=1, chat_template=t.chat_template)
    p.save_pretrained(folder)
    return {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "image_token_index": 1999, "projector_hidden_act": "gelu", "vision_feature_layer": -2, "vision_feature_select_strategy": "default", "torch_dtype": "bfloat16", "image_seq_length": 576,
      "text_config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 2000, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"},
      "vision_config": {"model_type": "clip_vision_model", "hidden_size": 256, "image_size": 336, "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 3, "patch_size": 14, "projection_dim": 256, "vocab_size": 2000}}


def qwen3_vl(folder):
    names = {"<|vision_start|>": 1990, "<|vision_end|>": 1991, "<|image_pad|>": 1992, "<|video_pad|>": 1993}
    t = tokenizer(2000, names, "<|vision_start|><|image_pad|><|vision_end|>", extra_special_tokens={"image_token": "<|image_pad|>", "video_token": "<|video_pad|>", "vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"})
    size = dict(patch_size=16, temporal_patch_size=2, merge_size=2)
    image = transformers.Qwen2VLImageProcessorFast(size={"shortest_edge": 65536, "longest_edge": 1048576}, **size)
    video = transformers.Qwen3VLVideoProcessor(size={"shortest_edge": 4096, "longest_edge": 1048576}, **size)
    transformers.Qwen3VLProcessor(image_processor=image, tokenizer=t, video_processor=video, chat_template=t.chat_template).save_pretrained(folder)
    return {"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "image_token_id": 1992, "video_token_id": 1993, "vision_start_token_id": 1990, "vision_end_token_id": 1991, "tie_word_embeddings": True,
      "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 2000, "max_position_embeddings": 16384, "rms_norm_eps": 1e-6, "dtype": "bfloat16", "tie_word_embeddings": True, "rope_theta": 5000000, "bos_token_id": 1, "eos_token_id": 2,
                      "rope_scaling": {"mrope_interleaved": True, "mrope_section": [12, 10, 10], "rope_type": "default"}},
      "vision_config": {"model_type": "qwen3_vl", "depth": 4, "hidden_size": 256, "intermediate_size": 512, "num_heads": 4, "out_hidden_size": 512, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3, "num_position_embeddings": 2304, "deepstack_visual_indexes": [0, 1, 2], "hidden_act": "gelu_pytorch_tanh", "initializer_range": 0.02}}


def gemma3(folder):
    names = {"<start_of_image>": 1990, "<end_of_image>": 1991, "<image_soft_token>": 1992}
    t = tokenizer(2000, names, "<start_of_image>", extra_special_tokens={"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"})
    image = transformers.Gemma3ImageProcessor(size={"height": 896, "width": 896})
    transformers.Gemma3Processor(image_processor=image, tokenizer=t, image_seq_length=256, chat_template=t.chat_template).save_pretrained(folder)
    return {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "boi_token_index": 1990, "eoi_token_index": 1991, "image_token_index": 1992, "mm_tokens_per_image": 256, "torch_dtype": "bfloat16",
      "text_config": {"model_type": "gemma3_text", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 2000, "max_position_embeddings": 8192, "sliding_window": 1024, "query_pre_attn_scalar": 64},
      "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 256, "image_size": 896, "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 3, "patch_size": 14, "vision_use_head": False}}


def whisper(folder):
    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|translate|>", "<|notimestamps|>", "<|startofprev|>", "<|nospeech|>"]
    t = tokenizer(2000, {name: 1980 + i for i, name in enumerate(special)}, "")
    t.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
    return {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": 256, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "vocab_size": 2000, "num_mel_bins": 80, "max_source_positions": 1500, "max_target_positions": 448, "torch_dtype": "bfloat16", "decoder_start_token_id": 1981, "bos_token_id": 1980, "eos_token_id": 1980, "pad_token_id": 1980}


def main():
    for name in sys.argv[2:]:
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(folder, exist_ok=True)
        config = globals()[name](folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)


if __name__ == "__main__":
    main()
