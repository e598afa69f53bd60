"""How large is the item that the engine profiles its encoder with, as the processor's files say it? The engine's own processor is asked, and `plan`.

    tests/oracle/processors.py BINARY [--vllm VERSION] [--models DIR]

Configs of public models, each with processor files of several kinds. Qwen's families: limits of images and of videos as numbers of pixels or as an edge, in a
file of each or in one of both, files that contradict one another. Gemma 3, Llama 4, Mistral 3, LFM2 VL: crops, tiles, a longest edge, tokens. Compared are
the tokens of the encoder's outputs. Exit 77 without an engine."""
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
OTHERS = ("gemma-3-4b-it", "Llama-4-Scout-17B-16E-Instruct", "Mistral-Small-3.2-24B-Instruct-2506", "LFM2.5-VL-1.6B")
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


def tokenizer(words, **more):
    """One that knows the words that stand for images."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    # Gemma 3 joins these
    known = {**{"w%d" % i: i for i in range(100)}, "\n": 100, "\n\n": 101, "\n\n\n": 102, "\n\n\n\n": 103, **words}
    plain = Tokenizer(models.WordLevel(known, unk_token="w0"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="w0", bos_token="w1", eos_token="w2", pad_token="w3", extra_special_tokens=more)
    fast.add_special_tokens({"additional_special_tokens": list(words)})
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    return fast


def others(config):
    """Families whose limit is not a number of pixels: {what differs: the processor}."""
    import transformers as t
    kind = config["model_type"]
    if kind == "gemma3":
        names = {"<start_of_image>": config["boi_token_index"], "<end_of_image>": config["eoi_token_index"], "<image_soft_token>": config["image_token_index"]}
        words = tokenizer(names, image_token="<image_soft_token>", boi_token="<start_of_image>", eoi_token="<end_of_image>")
        for more in ({}, {"do_pan_and_scan": True, "pan_and_scan_max_num_crops": 4, "pan_and_scan_min_crop_size": 256, "pan_and_scan_min_ratio_to_activate": 1.2},
                     {"do_pan_and_scan": True, "pan_and_scan_max_num_crops": 2, "pan_and_scan_min_crop_size": 256, "pan_and_scan_min_ratio_to_activate": 1.2}):
            image = t.Gemma3ImageProcessor(size={"height": 896, "width": 896}, **more)
            yield more, t.Gemma3Processor(image_processor=image, tokenizer=words, image_seq_length=256, chat_template=words.chat_template)
    if kind == "llama4":
        names = {word: 200080 + i for i, word in enumerate(("<|image_start|>", "<|image_end|>", "<|tile_x_separator|>", "<|tile_y_separator|>", "<|image|>", "<|patch|>"))}
        names["<|patch|>"] = config.get("image_token_index", 200092)
        words = tokenizer(names)
        for tiles in (16, 5, 1):
            image = t.Llama4ImageProcessor(size={"height": 336, "width": 336}, max_patches=tiles)
            yield {"max_patches": tiles}, t.Llama4Processor(image_processor=image, tokenizer=words, patch_size=14, pixel_shuffle_ratio=0.5, chat_template=words.chat_template)
    if kind == "mistral3":
        words = tokenizer({"[IMG]": config["image_token_index"], "[IMG_BREAK]": 120, "[IMG_END]": 130})
        for edge in (1540, 980, 700):
            image = t.PixtralImageProcessor(size={"longest_edge": edge}, patch_size={"height": 14, "width": 14})
            yield {"longest_edge": edge}, t.PixtralProcessor(image_processor=image, tokenizer=words, patch_size=14, spatial_merge_size=config["spatial_merge_size"], chat_template=words.chat_template)
    if kind == "lfm2_vl":
        names = {"<|image_start|>": 498, "<|image_end|>": 499, "<|img_thumbnail|>": 497, "<image>": config["image_token_id"]}
        words = tokenizer(names, image_token="<image>", image_start_token="<|image_start|>", image_end_token="<|image_end|>", image_thumbnail="<|img_thumbnail|>")
        for most, tiles in ((256, 10), (128, 4), (256, 1)):
            image = t.Lfm2VlImageProcessor(max_image_tokens=most, min_tiles=min(2, tiles), max_tiles=tiles)
            yield {"max_image_tokens": most, "max_tiles": tiles}, t.Lfm2VlProcessor(image_processor=image, tokenizer=words, chat_template=words.chat_template)


def write_other(folder, config, number):
    more, processor = list(others(config))[number]
    processor.save_pretrained(folder)
    apart = os.path.join(folder, "processor_config.json")
    with open(apart, encoding="utf-8") as file:
        said = json.load(file)
    if number % 2 and "image_processor" in said:  # as published before Transformers 5
        with open(os.path.join(folder, "preprocessor_config.json"), "w", encoding="utf-8") as file:
            json.dump(said.pop("image_processor"), file)
        with open(apart, "w", encoding="utf-8") as file:
            json.dump(said, file)
    return more


def write(folder, config, files):
    """A folder that the engine's processor can be made of: a tokenizer with the words that stand for images."""
    ids = {"<|vision_start|>": config.get("vision_start_token_id", 151652), "<|vision_end|>": config.get("vision_end_token_id", 151653),
           "<|image_pad|>": config["image_token_id"], "<|video_pad|>": config["video_token_id"]}
    more = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>", "vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"}
    tokenizer(ids, **more).save_pretrained(folder)
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
        try:
            with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                (write_other if isinstance(files, int) else write)(folder, json.load(file), files)
            budget = MultiModalBudget(EngineArgs(model=folder, load_format="dummy", max_model_len=32768, max_num_batched_tokens=8192).create_engine_config(), MULTIMODAL_REGISTRY)
            items = budget.get_dummy_encoder_profile_inputs()
            modality, item = items[0]
            if isinstance(files, int) and modality != "video":
                places = budget.processor.get_dummy_mm_inputs(mm_counts={modality: 1})["mm_placeholders"][modality]
                tokens = sum(place.get_num_embeds() for place in places)
            else:
                tokens = int(item[modality + "_grid_thw"].data.prod()) // 2 ** 2
            answer = [len(items) * tokens, modality, dict(budget.mm_max_toks_per_item)]
        except Exception as error:  # its answer
            answer = ["%s: %s" % (type(error).__name__, str(error)[:300])]
        print("\nANSWER", json.dumps([folder, *answer]), flush=True)


def planned(binary, version, folder):
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", "H100", "--vllm", version, "--", "vllm", "serve", folder, *COMMAND], stdout=subprocess.PIPE, check=False)
    plan = json.loads(done.stdout)
    rows = [row["bytes"] for phase in plan["phases"] for row in phase["holds"] if row["owner"] == "encoder outputs"]
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    vision = config.get("vision_config", {})
    own = config["text_config"]["hidden_size"] if "text_config" in config else vision["hidden_size"]
    width = vision.get("out_hidden_size", own) * (1 + len(vision.get("deepstack_visual_indexes") or ()))
    return max(rows, default=0) / width / 2


def config_of(models, name):
    """From a file, or as it is built in."""
    path = os.path.join(models, name, "config.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    with open(os.path.join(HERE, "../../data/catalogue.json"), encoding="utf-8") as file:
        return next(entry["config"] for id, entry in json.load(file).items() if id.endswith("/" + name))


def main():
    if sys.argv[1:2] == ["--ask"]:
        return ask(sys.argv[2])
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--vllm", default="0.32.0")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--models", default=os.path.join(HERE, "../../../shared/golden/models"))
    parser.add_argument("--only", default="", help="models whose name has this")
    parser.add_argument("--keep", help="the folders, which stay there")
    options = parser.parse_args()
    found = engines.venvs().get(options.vllm)
    if not found or not os.path.isdir(options.models):
        print("no engine in", engines.VENVS, "or no models in", options.models)
        return engines.SKIP
    binary, dice = os.path.abspath(options.binary), random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        scratch, cases = options.keep or scratch, []
        for name in MODELS + OTHERS:
            if options.only not in name:
                continue
            config = config_of(options.models, name)
            for number, files in enumerate(range(3) if name in OTHERS else variants(dice, config["vision_config"]["patch_size"])):
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
