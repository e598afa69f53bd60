"""How large is the item that the engine profiles its encoder with, as the processor's files say it? The engine's own processor is asked, and `plan`.

    tests/oracle/processors.py BINARY [--vllm VERSION] [--models DIR]

Configs of public models of Qwen's families, each with processor files of several kinds: limits of images and of videos as numbers of pixels or as an
edge, in a file of each or in one of both, files that contradict one another. Compared are the tokens of the encoder's outputs. Exit 77 without an engine."""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import engines

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ("Qwen2-VL-7B-Instruct", "Qwen2.5-VL-7B-Instruct", "Qwen3-VL-4B-Instruct", "Qwen3.5-4B")
COMMAND = ["--max-model-len", "32768", "--max-num-batched-tokens", "8192"]
OTHER = {"qwen2_vl": "Qwen2VL", "qwen2_5_vl": "Qwen2_5_VL", "qwen3_vl": "Qwen3VL", "qwen3_5": "Qwen3VL"}


def variants(dice, patch):
    """Files of a processor: {name: contents}."""
    side = 2 * patch

    def pixels():
        return side * side * dice.randrange(64, 20000)

    def size(how):
        most = pixels()
        least = {"shortest_edge": side * side * 4}
        return {"max_pixels": most, "min_pixels": side * side * 4} if how == "pixels" else {"size": {"longest_edge": most, **least}}
    common = {"patch_size": patch, "temporal_patch_size": 2, "merge_size": 2}
    for how in ("pixels", "edge"):
        yield {"preprocessor_config.json": {**common, **size(how)}}
        yield {"preprocessor_config.json": {**common, **size(how)}, "video_preprocessor_config.json": {**common, **size("edge")}}
    yield {"processor_config.json": {"image_processor": {**common, **size("edge")}, "video_processor": {**common, **size("edge")}}}
    yield {"preprocessor_config.json": {**common, **size("pixels")}, "video_preprocessor_config.json": {**common, **size("edge")},
           "processor_config.json": {"image_processor": {**common, **size("edge")}, "video_processor": {**common, **size("edge")}}}


def write(folder, config, files):
    """A folder that the engine's processor can be made of: a tokenizer with the words that stand for images."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    ids = {"<|vision_start|>": config.get("vision_start_token_id", 151652), "<|vision_end|>": config.get("vision_end_token_id", 151653),
           "<|image_pad|>": config["image_token_id"], "<|video_pad|>": config["video_token_id"]}
    words = {"w%d" % i: i for i in range(100)}
    words.update(ids)
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    more = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>", "vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0", bos_token="w1", eos_token="w2", pad_token="w3", extra_special_tokens=more)
    fast.add_special_tokens({"additional_special_tokens": list(ids)})
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    fast.save_pretrained(folder)
    family = OTHER[config["model_type"]]
    image = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": family + "Processor"}
    video = {"video_processor_type": ("Qwen3VL" if family == "Qwen3VL" else "Qwen2VL") + "VideoProcessor", "processor_class": family + "Processor"}
    for name, body in files.items():
        if name == "processor_config.json":
            body = {"processor_class": family + "Processor", "image_processor": {**image, **body["image_processor"]}, "video_processor": {**video, **body["video_processor"]}}
        else:
            body = {**(video if name.startswith("video") else {**image, "video_processor_type": video["video_processor_type"]}), **body}
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(body, f)


def ask(listing):
    """Inside the engine's Python: a line for each folder."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.multimodal import MULTIMODAL_REGISTRY
    try:
        from vllm.multimodal.encoder_budget import MultiModalBudget
    except ImportError:
        from vllm.v1.worker.utils import MultiModalBudget
    with open(listing, encoding="utf-8") as file:
        cases = json.load(file)
    for folder, files in cases:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            write(folder, json.load(file), files)
        try:
            budget = MultiModalBudget(EngineArgs(model=folder, load_format="dummy", max_model_len=32768, max_num_batched_tokens=8192).create_engine_config(), MULTIMODAL_REGISTRY)
            items = budget.get_dummy_encoder_profile_inputs()
            modality, item = items[0]
            grid = item[modality + "_grid_thw"].data
            merge = 2
            answer = [len(items) * int(grid.prod()) // merge ** 2, modality, dict(budget.mm_max_toks_per_item)]
        except Exception as error:  # its answer
            answer = ["%s: %s" % (type(error).__name__, str(error)[:300])]
        print("\nANSWER", json.dumps([folder, *answer]), flush=True)


def planned(binary, version, folder):
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", "H100", "--vllm", version, "--", "vllm", "serve", folder, *COMMAND], stdout=subprocess.PIPE, check=False)
    plan = json.loads(done.stdout)
    rows = [row["bytes"] for phase in plan["phases"] for row in phase["holds"] if row["owner"] == "encoder outputs"]
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        vision = json.load(file)["vision_config"]
    width = vision.get("out_hidden_size", vision["hidden_size"]) * (1 + len(vision.get("deepstack_visual_indexes") or ()))
    return max(rows, default=0) / width / 2


def main():
    if sys.argv[1:2] == ["--ask"]:
        return ask(sys.argv[2])
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--vllm", default="0.32.0")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--models", default=os.path.join(HERE, "../../../shared/golden/models"))
    parser.add_argument("--keep", help="the folders, which stay there")
    options = parser.parse_args()
    found = engines.venvs().get(options.vllm)
    if not found or not os.path.isdir(options.models):
        print("no engine in", engines.VENVS, "or no models in", options.models)
        return engines.SKIP
    binary, dice = os.path.abspath(options.binary), random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        scratch, cases = options.keep or scratch, []
        for name in MODELS:
            with open(os.path.join(options.models, name, "config.json"), encoding="utf-8") as file:
                config = json.load(file)
            for number, files in enumerate(variants(dice, config["vision_config"]["patch_size"])):
                folder = os.path.join(scratch, "%s-%d" % (name, number))
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                    json.dump(config, file)
                cases.append((folder, files))
        listing = os.path.join(scratch, "cases.json")
        with open(listing, "w", encoding="utf-8") as file:
            json.dump(cases, file)
        with engines.turn():
            done = subprocess.run([binary, "dryrun", "--gpu", "H100", "--timeout", "1500", "--", os.path.join(found, "bin", "python"), os.path.abspath(__file__), "--ask", listing],
                                  env=dict(os.environ, HF_HUB_OFFLINE="1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        answers = {line[0]: line[1:] for line in (json.loads(text[7:]) for text in re.findall(r"^ANSWER .*$", done.stdout, re.M))}
        if len(answers) != len(cases):
            print(done.stdout[-3000:])
            return 1
        equal = 0
        for folder, _ in cases:
            answer, ours = answers[folder], planned(binary, options.vllm, folder)
            near = not isinstance(answer[0], str) and abs(ours - answer[0]) <= 0.01 * answer[0]
            equal += near
            if not near or options.keep:
                print("%s %s: engine %s, plan %.0f" % ("ok  " if near else "FAIL", os.path.basename(folder), answer, ours))
    print("%d of %d encoder profiles within 1 %% of the engine's, vLLM %s" % (equal, len(cases), options.vllm))
    return 0 if equal == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
