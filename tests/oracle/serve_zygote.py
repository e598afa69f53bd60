"""Many engines in one process that has imported vLLM already: offline starts for the table of serve_table.py at a tenth of their cost.

    tests/oracle/serve_zygote.py BINARY --release VERSION [--start NAME]... [--seconds N] [--logs FOLDER]

One dry run of a program that imports vLLM, then forks a child a start; the child makes an `LLM` and asks it in every way below, one after
the other, with the engine in its own process. The device's peak is what it has handed out when a child is done with all ways: PyTorch gives
nothing back while it serves. Rows go to serving.jsonl like those of serve_table.py, as `NAME, offline`."""
import argparse
import json
import os
import sys
import tempfile

import engines
import models
import serve_table

GPU = "A100-40GB"
COMMON = {"load_format": "dummy", "max_num_seqs": 128, "max_num_batched_tokens": 1024, "gpu_memory_utilization": 0.5}
EAGER = {"enforce_eager": True}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2, "prompt_lookup_min": 1}
EAGLE = {"method": "eagle", "model": "{SCRATCH}/eagle-tiny", "num_speculative_tokens": 3}
# name: (model, arguments of LLM, flags of `vllm serve` that say the same to plan)
STARTS = {
    "eager": ("opt-tiny", EAGER, []),
    "experts": ("moe-tiny", EAGER, []),
    "latent attention": ("mla-tiny", EAGER, []),
    "quantised": ("gptq-tiny", EAGER, []),
    "hybrid": ("hybrid-tiny", EAGER, []),
    "EAGLE": ("llama-tiny", {**EAGER, "speculative_config": EAGLE}, ["--speculative-config", json.dumps(EAGLE)]),
    "LoRA": ("llama-tiny", {**EAGER, "enable_lora": True, "max_lora_rank": 8}, ["--enable-lora", "--max-lora-rank", "8"]),
    "sleep and wake": ("opt-tiny", {**EAGER, "enable_sleep_mode": True}, ["--enable-sleep-mode"]),
    "MTP": ("mtp-tiny", {**EAGER, "speculative_config": {"method": "mtp", "num_speculative_tokens": 1}},
            ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}']),
    "ngram": ("opt-tiny", {**EAGER, "speculative_config": NGRAM}, ["--speculative-config", json.dumps(NGRAM)]),
    "preemption": ("opt-tiny", {**EAGER, "num_gpu_blocks_override": 140}, ["--num-gpu-blocks-override", "140"]),
    "images": ("llava-tiny", {**EAGER, "limit_mm_per_prompt": {"image": 1}}, ["--limit-mm-per-prompt", '{"image": 1}']),
    "graphs": ("opt-tiny", {}, []),
}
PROGRAM = r'''
import json, os, signal, sys, time, traceback
jobs = json.load(open(sys.argv[1]))
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
import torch
import vllm
from vllm import LLM, SamplingParams
import vllm.v1.engine.core, vllm.v1.worker.gpu_worker, vllm.v1.worker.gpu_model_runner
try:
    import vllm.v1.worker.gpu.model_runner
except ImportError:
    pass


def tell(**words):
    print("CELL " + json.dumps(words), flush=True)


def prompts(count, length, shared=0, first=0):
    return [{"prompt_token_ids": [3 + (k * 7 if k < shared else (i + first) * 31 + k * 7) % 900 for k in range(length)]} for i in range(count)]


def whole(outputs, answer):
    return sum(len(output.outputs[0].token_ids) == answer for output in outputs)


def leaving(llm, count, length, answer):
    """Every fifth is aborted when it has had two steps."""
    engine, done = llm.llm_engine, 0
    names = ["leaver-%d" % i for i in range(count)]
    for name, prompt in zip(names, prompts(count, length, first=5000)):
        engine.add_request(name, prompt, SamplingParams(max_tokens=answer, ignore_eos=True))
    for _ in range(2):
        engine.step()
    engine.abort_request(names[::5])
    while engine.has_unfinished_requests():
        done += sum(output.finished and not output.outputs[0].finish_reason == "abort" for output in engine.step())
    return done, len(names[::5])


def choice():
    from vllm import sampling_params
    if hasattr(sampling_params, "StructuredOutputsParams"):
        return {"structured_outputs": sampling_params.StructuredOutputsParams(choice=["w5", "w6", "w7"])}
    return {"guided_decoding": sampling_params.GuidedDecodingParams(choice=["w5", "w6", "w7"])}


def asked(llm, name, way, job):
    """(answered, aborted, requests)"""
    more = {"lora_request": vllm.lora.request.LoRARequest("adapter", 1, job["adapter"])} if name == "LoRA" else {}
    say = lambda inputs, answer, **words: whole(llm.generate(inputs, SamplingParams(max_tokens=answer, ignore_eos=True, **words), use_tqdm=False, **more), answer)
    if way == "an image each":
        from PIL import Image
        inputs = prompts(100, 32)
        for i, one in enumerate(inputs):
            one["prompt_token_ids"] = [1023] + one["prompt_token_ids"]
            one["multi_modal_data"] = {"image": Image.new("RGB", (336, 336), (i % 256, 0, 0))}
        return say(inputs, 16), 0, 100
    if way == "requests":
        return (say(prompts(200, 64), 200), 0, 200) if name == "preemption" else (say(prompts(500, 64), 16), 0, 500)
    if way == "clients that leave":
        done, left = leaving(llm, 100, 64, 16)
        return done, left, 100
    if way == "log probabilities":
        return say(prompts(100, 64, first=600), 16, logprobs=5), 0, 100
    if way == "penalties":
        return say(prompts(100, 64, first=700), 16, frequency_penalty=0.5, presence_penalty=0.5, repetition_penalty=1.1), 0, 100
    if way == "shared prefix":
        return say(prompts(100, 256, shared=128, first=800), 8), 0, 100
    if way == "chunked prefill":
        return say(prompts(8, 1500, first=900), 8), 0, 8
    if way == "grammar":
        outputs = llm.generate(prompts(50, 16, first=950), SamplingParams(max_tokens=4, **choice()), use_tqdm=False, **more)
        return sum(len(output.outputs[0].token_ids) > 0 for output in outputs), 0, 50
    if way == "asleep, awake, requests":
        before = torch.cuda.mem_get_info()[0]
        llm.sleep(level=1)
        slept = torch.cuda.mem_get_info()[0] - before
        llm.wake_up()
        print("slept: %d bytes given back" % slept, flush=True)
        return say(prompts(200, 64, first=40), 16) if slept > 0 else 0, 0, 200
    raise ValueError(way)


def serve(job):
    name = job["name"]
    llm = LLM(job["model"], **job["arguments"])
    for way in job["ways"]:
        start = time.time()
        try:
            answered, aborted, requests = asked(llm, name, way, job)
            tell(name=name, way=way, answered=answered, aborted=aborted, requests=requests, seconds=time.time() - start)
        except Exception as error:
            traceback.print_exc()
            tell(name=name, way=way, error="%s: %s" % (type(error).__name__, str(error).splitlines()[0][:160] if str(error) else ""))
            break  # what an engine does after that tells nothing
    free, total = torch.cuda.mem_get_info()
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in caches(llm)}
    tell(name=name, used=total - free, kv=sum(storages.values()))


def caches(llm):
    """The tensors of the KV cache, found as the layers have them."""
    core = llm.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    found = []
    for layer in runner.vllm_config.compilation_config.static_forward_context.values():
        cache = getattr(layer, "kv_cache", [])
        for part in [cache] if isinstance(cache, torch.Tensor) else cache:
            found += [t for t in (part if isinstance(part, (list, tuple)) else [part]) if isinstance(t, torch.Tensor) and t.numel()]
    return found


until = time.time() + float(sys.argv[2])  # of the starts alone: importing takes as long as the machine is busy
for job in jobs:
    if time.time() > until:
        tell(name=job["name"], late=True)
        continue
    child = os.fork()
    if child == 0:
        signal.alarm(400)
        try:
            serve(job)
        except BaseException as error:
            traceback.print_exc()
            tell(name=job["name"], error="%s: %s" % (type(error).__name__, str(error).splitlines()[0][:160] if str(error) else ""))
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        tell(name=job["name"], error="the process ended with %d" % status)
'''
WAYS = ["requests", "clients that leave", "log probabilities", "penalties", "shared prefix", "chunked prefill", "grammar"]
OWN_WAYS = {"images": ["an image each"], "sleep and wake": ["requests", "asleep, awake, requests"], "preemption": ["requests"],
            "ngram": WAYS[:2] + WAYS[3:6], "EAGLE": WAYS[:6], "MTP": WAYS[:6]}


def job_of(name, scratch, words):
    model, arguments, flags = STARTS[name]
    path = models.write(scratch, model)
    text = json.dumps({**COMMON, **arguments}).replace("{SCRATCH}", scratch)
    arguments = json.loads(text)
    if name == "images":
        serve_table.processor(path)
    else:
        arguments["tokenizer"] = words
    if name == "EAGLE":
        models.write(scratch, "eagle-tiny")
    job = {"name": name, "model": path, "arguments": arguments, "ways": OWN_WAYS.get(name, WAYS)}
    if name == "LoRA":
        job["adapter"] = os.path.join(scratch, "adapter")
        serve_table.adapter(job["adapter"], models.MODELS[model])
    return job, [word.replace("{SCRATCH}", scratch) for word in serve_table.FLAGS + (["--enforce-eager"] if arguments.get("enforce_eager") else []) + flags]


def rows_of(version, jobs, plans, told, seconds):
    for job in jobs:
        mine = [cell for cell in told if cell["name"] == job["name"]]
        if not mine or any(cell.get("late") for cell in mine):
            continue
        done = {cell["way"]: cell for cell in mine if "requests" in cell}
        error = next((cell["error"] for cell in mine if "error" in cell), None)
        cells = [{"way": way, "load": "offline", "requests": done[way]["requests"], "answered": done[way]["answered"], "aborted": done[way]["aborted"],
                  "rate": round(done[way]["answered"] / done[way]["seconds"], 1)} if way in done else
                 {"way": way, "load": "offline", "requests": 0, "answered": 0, "aborted": 0, "rate": None, "failed": True}
                 for way in job["ways"] if way in done or any(cell.get("way") == way for cell in mine)]
        used = next((cell for cell in mine if cell.get("kv")), None)
        peak = used and {"phase": "runtime", "bytes": used["used"], "holds": {"KV cache": used["kv"], "everything else": used["used"] - used["kv"]}}
        yield serve_table.row(version, job["name"] + ", offline", cells or [{"way": "start", "load": "offline", "requests": 0, "answered": 0, "aborted": 0,
                                                                            "rate": None, "failed": True}], peak, plans[job["name"]], None, 0, error, seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--release", default="0.32.0")
    parser.add_argument("--start", action="append", choices=list(STARTS))
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--logs")
    options = parser.parse_args()
    binary, folder = os.path.abspath(options.binary), engines.venvs().get(options.release)
    if not folder:
        return engines.SKIP
    with tempfile.TemporaryDirectory() as scratch:
        words = serve_table.tokenizer(os.path.join(scratch, "tokenizer"))
        made = [job_of(name, scratch, words) for name in options.start or STARTS]
        jobs = [job for job, _ in made]
        plans = {job["name"]: serve_table.planned(binary, options.release, GPU, job["model"], flags) for job, flags in made}
        program, list_ = os.path.join(scratch, "zygote.py"), os.path.join(scratch, "jobs.json")
        with open(program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        with open(list_, "w", encoding="utf-8") as f:
            json.dump(jobs, f)
        outcome = engines.dryrun(binary, folder, ["--gpu", GPU], ["python", program, list_, str(options.seconds)], {}, 600)
    if options.logs:
        with open(os.path.join(options.logs, "zygote-%s.log" % options.release), "a", encoding="utf-8") as f:
            f.write(outcome.log)
    told = [json.loads(line[5:]) for line in outcome.log.splitlines() if line.startswith("CELL ")]
    for row in rows_of(options.release, jobs, plans, told, round(outcome.seconds)):
        serve_table.keep(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
