#!/usr/bin/env python3
"""The page says what the command says: test_same.py BINARY APP_DIR. Exit 77 where no browser is installed.

Commands, manifests, configs, logs and traces of both engines are pasted into the boxes or dropped, as people do. What the page shows must be the
command's own report of the same input, byte for byte, its JSON that of --json, and its verdict that of `oomsight check` for the same text.
Then what the page may not do: take a GPU that nobody named, keep a config for another model, put a text into the address. Standard library only."""
import functools
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

from browser import Browser
from test_app import FIXTURES, HERE, Test

KNOWN = "Qwen/Qwen3-8B"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.00 GiB is free.\n"
POD = """kind: Pod
spec:
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}
  containers:
  - name: engine
    image: vllm/vllm-openai:v0.19.1
    args: [--model, Qwen/Qwen3-8B]
    env:
    - name: HF_TOKEN
      value: mysupersecretkey
---
kind: Secret
data: {password: aHVudGVyMmh1bnRlcjI=}
"""
# (what it is, text, words of the plan behind `--`)
COMMANDS = [
    ("a command", "vllm serve Qwen/Qwen3-8B", "vllm serve Qwen/Qwen3-8B"),
    ("flags", "vllm serve Qwen/Qwen3-32B --max-model-len 8192 --tensor-parallel-size 2", "vllm serve Qwen/Qwen3-32B --max-model-len 8192 --tensor-parallel-size 2"),
    ("a variable", "VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B", "VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B"),
    ("lines that go on", "vllm serve Qwen/Qwen3-8B \\\r\n  --max-model-len 4096\r\n", "vllm serve Qwen/Qwen3-8B --max-model-len 4096"),
    ("the module", "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B", "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B"),
    ("a container", "docker run --gpus all vllm/vllm-openai:v0.19.1 --model Qwen/Qwen3-8B", "docker run --gpus all vllm/vllm-openai:v0.19.1 --model Qwen/Qwen3-8B"),
    ("a container by sudo", "sudo docker run vllm/vllm-openai:v0.24.0 --model Qwen/Qwen3-8B", "sudo docker run vllm/vllm-openai:v0.24.0 --model Qwen/Qwen3-8B"),
    ("a prompt", "$ vllm serve Qwen/Qwen3-8B --max-model-len 2048", "vllm serve Qwen/Qwen3-8B --max-model-len 2048"),
    ("a prompt with its host", "user@host:~$ vllm serve Qwen/Qwen3-8B --enforce-eager", "vllm serve Qwen/Qwen3-8B --enforce-eager"),
    ("colours", "\x1b[1;32mme\x1b[0m:~$ vllm \x1b[36mserve\x1b[0m Qwen/Qwen3-8B --dtype half", "vllm serve Qwen/Qwen3-8B --dtype half"),
    ("a fence", "It doesn't start:\n```bash\nvllm serve Qwen/Qwen3-8B --max-num-seqs 64\n```\nwhy?", "vllm serve Qwen/Qwen3-8B --max-num-seqs 64"),
    ("Python", 'from vllm import LLM\nllm = LLM(model="Qwen/Qwen3-8B", tensor_parallel_size=2)', 'LLM(model="Qwen/Qwen3-8B", tensor_parallel_size=2)'),
    ("a model alone", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
    ("a model and flags", "Qwen/Qwen3-8B --max-model-len 8192", "Qwen/Qwen3-8B --max-model-len 8192"),
    ("a refusal", "vllm serve Qwen/Qwen3-8B --max-model-len 10000000", "vllm serve Qwen/Qwen3-8B --max-model-len 10000000"),
    ("a model that nobody knows", "vllm serve acme/nobody", "vllm serve acme/nobody"),
    ("SGLang", "sglang serve Qwen/Qwen3-8B", "sglang serve Qwen/Qwen3-8B"),
    ("SGLang's module", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 8192", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 8192"),
    ("SGLang in a container", "docker run --gpus all lmsysorg/sglang:v0.5.23 python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B", "docker run --gpus all lmsysorg/sglang:v0.5.23 python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"),
    ("SGLang behind a prompt", "# sglang serve Qwen/Qwen3-32B --tp 2", "sglang serve Qwen/Qwen3-32B --tp 2"),
    ("SGLang with its share", "sglang serve Qwen/Qwen3-8B --mem-fraction-static 0.7", "sglang serve Qwen/Qwen3-8B --mem-fraction-static 0.7"),
]
OTHERS = {"llama-server -m x.gguf -ngl 99": "llama.cpp", "$ ollama run llama3": "Ollama", "trtllm-serve meta/x --tp_size 2": "TensorRT-LLM",
          "docker run --gpus all ghcr.io/huggingface/text-generation-inference:2.0 --model-id x": "Text Generation Inference"}


class Same(Test):
    equal = 0

    def words(self):
        return self.browser.run("[$('state').textContent, ['took', 'said'].map(id => $(id).hidden ? '' : $(id).textContent).join(' '), $('model').textContent, $('message').hidden ? '' : $('message').textContent]")

    def link(self):
        return self.browser.run("location.hash")

    def drop(self, name, content):
        self.browser.run("take([new File([Uint8Array.from(%s)], %s)]); 0" % (json.dumps(list(content)), json.dumps(name)))
        self.settled()

    def report(self):
        """As the command writes it, without the nonce of what the page puts behind it."""
        return re.sub(r"; script-src 'nonce-\w+'(?=\")| 'nonce-\w+'| nonce=\"\w+\"", "", super().report())

    def same(self, what, args, stdin=None):
        """What the page shows is what the command writes: the report by its bytes, its JSON by --json, an error by its words."""
        environment = {"PATH": os.environ["PATH"], "HF_HUB_CACHE": os.path.join(self.work, "hf"), "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
        runs = [subprocess.Popen([self.binary, args[0], "--format", form, *args[1:]], cwd=self.work, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for form in ("html", "json")[:1 if args[0] == "replay" else 2]]  # beside each other
        told = [[part.decode(errors="replace") for part in run.communicate(stdin or b"")] for run in runs]
        page, html, error = self.report(), told[0][0], told[0][1].replace(self.work + "/hf", "/hf")
        if not html:  # what the command cannot read is told in the words of the page
            told = self.words()[2] + self.words()[3]
            self.claim("%s: why there is no answer is told" % what, not page and told and not re.search("/hf|--offline|--gpu|oomsight", told), (self.words(), error))
            return None
        shown = page[:page.rindex("<style>#theme, h1")] if page else ""
        self.claim("%s: the verdict stands above it" % what, len(self.browser.run("$('verdict').textContent")) > 5, self.words())
        self.claim("%s: the report is the command's" % what, shown == html, "%s | %s" % (self.words(), html[-200:]))
        documents = None
        if args[0] != "replay":
            found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', shown, re.S)
            documents = json.loads(found.group(1))["documents"] if found else None
            lines = told[1][0]
            try:
                wanted = [json.loads(lines)]
            except ValueError:
                wanted = [json.loads(line) for line in lines.splitlines()]
            self.claim("%s: its JSON is the command's" % what, documents == wanted, str(documents)[:200])
        self.equal += shown == html
        return documents[0] if documents else None

    @functools.lru_cache(maxsize=None)
    def checked(self, text, gpu):
        run = subprocess.run([self.binary, "check", "--json", "--offline", *(["--gpu", gpu] if gpu else []), "-"], input=text.encode(), capture_output=True, cwd=self.work,
                             env={"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"})
        # of several the first of the worst is shown
        rank = lambda c: (not c["plan"], ["fails", "starts", None].index(c["likely"]), ["refused", "fails", "tight", "fits", "unknown", None].index(c["verdict"]) // 2)
        return min(json.loads(run.stdout)["commands"], key=rank)

    def same_check(self, what, document, text, gpu):
        """... and the verdict is that of a check of the same text."""
        if document:
            seen = [document["verdict"], document["phase"], document["why"], document["engine"]["version"], document["gpu"]["name"]]
            wanted = [self.checked(text, gpu)[k] for k in ("verdict", "phase", "why", "engine_version", "gpu")]
            self.claim("%s: check says the same" % what, seen == wanted, (seen, wanted))

    # ---- equal ----

    def commands(self):
        for what, text, words in COMMANDS:
            gpu = "4090x2" if " 2" in words else "4090"
            self.ask(text, gpu)
            document = self.same(what, ["plan", "--offline", "--gpu", gpu, "--", *([words] if words.startswith("LLM(") else words.split(" "))])
            self.same_check(what, document, text, gpu)

    def manifests(self):
        for path in sorted(glob.glob(os.path.join(FIXTURES, "deploy", "*")) + glob.glob(os.path.join(FIXTURES, "deploy-tools", "*"))):
            name = os.path.basename(path)
            with open(path, encoding="utf-8") as f:
                text = re.sub(r"acme/small-[a-z]+", KNOWN, f.read())
            gpu = "" if "--gpu" in (self.checked(text, "")["plan"] or ()) else "h100"
            self.ask(text, gpu)
            asked = self.checked(text, gpu)
            if not asked["plan"]:
                self.claim("%s: why it cannot be planned is told" % name, asked["problem"] in self.words()[0], self.words())
                continue
            self.same_check(name, self.same(name, ["plan", "--offline", *asked["plan"]]), text, gpu)

    def logs(self):
        logs = [os.path.join(FIXTURES, "kb", record, "positive.log") for record in (
            "vllm/context-too-long", "vllm/weights-exceed-gpu", "vllm/cudagraph-profile-trial-cache", "host/oom-killer")]
        logs += [sorted(glob.glob(os.path.join(FIXTURES, "kb", engine, "*", "positive.log")))[0] for engine in ("sglang", "tgi", "llama.cpp", "torch")]
        for i, path in enumerate(logs):
            with open(path, "rb") as f:
                content = f.read()
            name = "%d.log" % i
            if i % 2:
                with open(os.path.join(self.work, name), "wb") as f:
                    f.write(content)
                self.drop(name, gzip.compress(content) if i == 1 else content)
                self.same(path, ["explain", name])
            else:
                self.ask(content.decode())
                self.same(path, ["explain", "-"], stdin=content)
        self.drop("prose.txt", b"hello world")
        with open(os.path.join(self.work, "prose.txt"), "wb") as f:
            f.write(b"hello world")
        self.same("prose", ["explain", "prose.txt"])

    def traces(self):
        for path in sorted(glob.glob(os.path.join(FIXTURES, "traces", "*"))):
            with open(path, "rb") as f:
                content = f.read()
            name = os.path.basename(path)
            with open(os.path.join(self.work, name), "wb") as f:
                f.write(content)
            self.drop(name, content)
            self.same(name, ["replay", name])
        with open(os.path.join(FIXTURES, "traces", "stranded.trace"), "rb") as f:
            content = f.read()
        self.ask(content.decode())
        self.same("a trace that is pasted", ["replay", "-"], stdin=content)

    def config(self, name, content):
        """A config where the command finds it under this name."""
        here = os.path.join(self.work, "hf", "models--" + name.replace("/", "--"))
        os.makedirs(os.path.join(here, "snapshots", "given"), exist_ok=True)
        os.makedirs(os.path.join(here, "refs"), exist_ok=True)
        for path, text in (("refs/main", "given"), ("snapshots/given/config.json", content)):
            with open(os.path.join(here, path), "w", encoding="utf-8") as f:
                f.write(text)

    def a_config_is_bound_to_the_model_named_then(self):
        with open(os.path.join(FIXTURES, "models", "small-llama", "config.json"), encoding="utf-8") as f:
            small = f.read()
        chips = "[...document.querySelectorAll('.chip')].map(c => c.textContent)"
        self.visit()
        self.browser.run("$('input').value = 'vllm serve acme/mine'; $('gpu').value = '4090'; 0")
        self.drop("config.json", small.encode())
        self.config("acme/mine", small)
        self.same("a config that is dropped", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "acme/mine"])
        self.claim("it is shown with its model", "acme/mine" in "".join(self.browser.run(chips)), self.browser.run(chips))
        self.ask("vllm serve Qwen/Qwen3-32B", "4090")
        self.same("the next model has its own", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "Qwen/Qwen3-32B"])
        self.ask("vllm serve acme/other", "4090")
        self.same("... or none", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "acme/other"])
        self.browser.run("$('input').value = 'vllm serve acme/mine'; document.querySelector('.chip button').click(); 0")
        self.settled()
        self.claim("a config can be removed", self.browser.run(chips) == [] and not self.report() and "acme/mine" in self.words()[2], self.words())
        self.ask("vllm serve " + KNOWN, "4090")
        self.drop("config.json", small.encode())
        self.same("a model that is known is planned by its own config", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", KNOWN])
        self.claim("until somebody says otherwise", self.browser.run("document.querySelectorAll('#model button').length") == 2, self.words())
        self.browser.run("document.querySelector('#model button').click()")
        self.settled()
        self.claim("then it is the given one", "small-llama" in self.report() or "2.3" in self.report(), self.words())
        self.visit()
        self.drop("config.json", small.encode())
        self.claim("without a model it waits for the next", len(self.browser.run(chips)) == 1 and "kept" in self.words()[0], self.words())
        self.ask("vllm serve acme/mine", "4090")
        self.same("which it is bound to", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "acme/mine"])
        self.ask(small, "4090")
        self.claim("a config that is pasted is a config", "kept" in self.words()[0], self.words())

    # ---- as it must be ----

    def a_gpu_that_nobody_named_is_asked_for(self):
        self.visit()
        for text in ("vllm serve " + KNOWN, "sglang serve " + KNOWN, KNOWN):
            self.ask(text)
            self.claim("%s: which GPU?" % text, not self.report() and "Name a GPU" in self.words()[0] and self.link() == "", self.words())

    def the_gpu_of_the_file_is_used_and_said(self):
        self.ask(POD)
        self.same("a pod", ["plan", "--offline", "--gpu", "NVIDIA-L4", "--", "vllm/vllm-openai:v0.19.1", "--model", KNOWN])
        self.claim("its GPU is said", "NVIDIA-L4" in self.words()[1], self.words())
        self.ask(POD, "h100")
        self.same("the box's GPU goes before it", ["plan", "--offline", "--gpu", "h100", "--", "vllm/vllm-openai:v0.19.1", "--model", KNOWN])
        self.claim("and both are said", "NVIDIA-L4" in self.words()[1] and "h100" in self.words()[1], self.words())

    def releases_are_those_of_the_engine(self):
        self.visit()
        self.ask("sglang serve " + KNOWN, "4090")
        self.claim("the box is named after the engine", self.browser.run("$('versionName').textContent") == "SGLang release")
        self.browser.run("$('version').value = 'sglang=0.5.20'; 0")
        self.ask("sglang serve " + KNOWN, "4090")
        self.same("a release of SGLang", ["plan", "--offline", "--gpu", "4090", "--engine", "sglang=0.5.20", "--", "sglang", "serve", KNOWN])
        self.ask("vllm serve " + KNOWN, "4090")
        self.same("a release of another engine's command is not kept", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", KNOWN])
        self.browser.run("$('version').value = 'vllm=0.19.1'; 0")
        self.ask("vllm serve " + KNOWN, "4090")
        self.same("a release of vLLM", ["plan", "--offline", "--gpu", "4090", "--engine", "vllm=0.19.1", "--", "vllm", "serve", KNOWN])
        self.browser.run("$('version').value = ''; 0")

    def a_link_holds_the_command_and_nothing_else(self):
        private = "please summarise the merger with Initech"
        texts = {"a pod": POD, "lines around it": "curl -u admin:KEYKEYKEY http://x\nvllm serve %s --api-key hunter2hunter2\n" % KNOWN,
                 "a log": "$ vllm serve %s\nINFO 11-16 12:00:00 [logger.py:1] prompt: '%s'\n%s" % (KNOWN, private, OOM),
                 "a comment": "# the password is opensesame\nvllm serve %s\n" % KNOWN}
        for what, text in texts.items():
            self.visit()
            self.ask(text, "4090")
            link = urllib.parse.unquote_plus(self.link())
            self.claim("%s: no other text is in the address" % what, not re.search("mysupersecretkey|aHVudGVy|KEYKEY|hunter2|Initech|opensesame|OutOfMemory|curl|kind", link), link)
            self.claim("%s: the command is, of a log nothing" % what, (KNOWN in link) == (what != "a log"), link)
        self.visit()
        self.ask(POD)
        first = self.report()
        self.visit(self.link())
        self.claim("a link gives the same plan", self.report() == first and first, self.words())

    def the_choice_is_in_the_link(self):
        self.visit()
        self.ask("vllm serve Qwen/Qwen3-8B --max-model-len 4096\nvllm serve Qwen/Qwen3-32B --max-model-len 8192\n", "h100")
        self.browser.run("document.querySelectorAll('#choices button')[1].click()")
        self.settled()
        second = self.report()
        self.visit(self.link())
        pressed = self.browser.run("[...document.querySelectorAll('#choices button')].map(b => b.getAttribute('aria-pressed'))")
        self.claim("the link opens the second", self.report() == second and "Qwen3-32B" in second and pressed == ["false", "true"], (self.words(), pressed))

    def other_engines_are_named(self):
        self.visit()
        for text, title in OTHERS.items():
            self.ask(text, "4090")
            self.claim("%s is named" % title, not self.report() and title in self.words()[0] and "log" in self.words()[0], self.words())

    def nothing_is_left_of_the_question_before(self):
        for text in ("llama-server -m x", "hello", "vllm serve"):
            self.ask("vllm serve " + KNOWN, "4090")
            self.claim("a plan has its note and its address", KNOWN in self.words()[2] and self.link() != "", self.words())
            self.ask(text, "4090")
            self.claim("%s: both are cleared" % text, self.words()[2] == "" and self.link() == "" and not self.report(), (self.words(), self.link()))
        self.ask("make && ssh host exec vllm serve m", "4090")
        self.claim("why nothing was found is told in check's words", "was not understood: ssh" in self.words()[0], self.words())

    def what_it_is_is_said(self):
        self.ask(OOM, "4090")
        self.same("a log", ["explain", "-"], stdin=OOM.encode())
        self.claim("it is said to be one", "Taken for a log" in self.words()[1], self.words())
        self.ask("$ vllm serve %s\n%s" % (KNOWN, OOM), "4090")
        self.claim("a log with its command is explained", "OUT OF MEMORY" in self.report(), self.words())
        self.wait("!!document.querySelector('#said button')")
        self.browser.run("document.querySelector('#said button').click()")
        self.settled()
        self.same("and the command is offered", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", KNOWN])
        self.claim("a command is said to be one", "Taken for a command" in self.words()[1], self.words())
        self.browser.run("document.querySelector('#took button').click()")
        self.settled()
        self.claim("and can be explained as a log", "Taken for a log" in self.words()[1], self.words())
        self.drop("pod.yaml", POD.encode())
        self.same("a manifest that is dropped", ["plan", "--offline", "--gpu", "4090", "--", "vllm/vllm-openai:v0.19.1", "--model", KNOWN])
        self.browser.run("$('gpu').value = ''; 0")
        self.drop("nothing.log", b"")
        self.claim("an empty file is said to be", "empty" in self.words()[0] and not self.report(), self.words())


    def suggestions(self):
        """The best one stands under the verdict, and can be planned; examples are there to be pressed."""
        self.visit()
        self.browser.run("document.querySelector('[data-example]').click()")
        self.settled()
        document = self.same("the first example", ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "Qwen/Qwen3-8B"])
        best = self.browser.run("$('best').hidden ? '' : $('bestCommand').textContent")
        self.claim("the best suggestion is the report's", document and best == document["answers"][0]["command"], best)
        seen = self.browser.run("$('verdict').textContent")
        self.claim("the verdict is one sentence with its figures", document and document["why"] in re.sub(r"(\d),(?=\d{3})", r"\1", seen), seen)
        facts = self.browser.run("$('facts').textContent")
        self.claim("GPU and release say where they come from", "4090 (given)" in facts and re.search(r"vLLM [0-9.]+ \(assumed\)", facts) is not None, facts)
        self.ask(POD)
        facts = self.browser.run("$('facts').textContent")
        self.claim("so do those of a file", "L4 (from the text)" in facts and "0.19.1 (from the text)" in facts, facts)
        self.browser.run("document.querySelector('[data-example]').click()")
        self.settled()
        self.browser.run("$('bestPlan').click()")
        self.settled()
        self.claim("it can be planned", self.browser.run("$('input').value") == best and best.split()[-1] in self.report(), self.words())
        for number, words in ((1, "SGLang"), (2, "Taken for a log")):
            self.browser.run("document.querySelectorAll('[data-example]')[%d].click()" % number)
            self.settled()
            self.claim("example %d answers" % number, bool(self.report()) and words in self.browser.run("$('facts').textContent + $('took').textContent"), self.words())

        self.claim("the verdict is that of the last question", "92720" in self.report() and "start" not in self.browser.run("$('verdict').textContent").split(":")[0].replace("Not started", ""), self.browser.run("$('verdict').textContent"))

    def near_names_are_offered(self):
        self.visit()
        self.ask("vllm serve Qwen/Qwen3-8b", "4090")
        self.claim("a model that is nearly known is offered", KNOWN in self.browser.run("[...document.querySelectorAll('#model button')].map(b => b.textContent)"), self.words())
        self.browser.run("document.querySelector('#model button').click()")
        self.settled()
        self.claim("and planned when it is pressed", "Qwen3-8B" in self.report(), self.words())
        self.ask("vllm serve " + KNOWN, "RTX 4909")
        self.claim("so is a GPU", "4090" in self.words()[3] and "oomsight" not in self.words()[3], self.words())
        for text in ("https://huggingface.co/" + KNOWN, "vllm serve https://huggingface.co/%s" % KNOWN):
            self.ask(text, "24GB")
            self.claim("%s is its name, 24GB a size" % text, "Qwen3-8B" in self.report() and "assumed" in self.browser.run("$('facts').textContent"), self.words())

    def messages_stand_under_the_button(self):
        for width in (390, 1280):
            self.visit("", width)
            for text, gpu in (("", ""), ("vllm serve " + KNOWN, ""), ("hello", "4090"), ("vllm serve acme/nobody", "4090"), ("vllm serve " + KNOWN, "RTX 4909")):
                self.ask(text, gpu)
                seen = self.browser.run("(() => { const go = document.querySelector('.go').getBoundingClientRect(), all = ['state', 'message', 'model'].map($).filter(e => e.getClientRects().length && e.textContent);"
                                        " return all.length ? all[0].getBoundingClientRect().top - go.bottom : null; })()")
                self.claim("at %d px the message for %r on %r is below the button" % (width, text, gpu), seen is not None and 0 <= seen < 60, seen)


def main():
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("app")
    options = parser.parse_args()
    if not Browser.find():
        print("no browser is installed")
        return 77
    with tempfile.TemporaryDirectory() as work:
        test = Same(options, work)
        try:
            test.visit()
            for part in (test.commands, test.manifests, test.logs, test.traces, test.a_config_is_bound_to_the_model_named_then, test.a_gpu_that_nobody_named_is_asked_for,
                         test.the_gpu_of_the_file_is_used_and_said, test.releases_are_those_of_the_engine, test.a_link_holds_the_command_and_nothing_else,
                         test.the_choice_is_in_the_link, test.other_engines_are_named, test.nothing_is_left_of_the_question_before, test.what_it_is_is_said,
                         test.suggestions, test.near_names_are_offered, test.messages_stand_under_the_button):
                start = time.time()
                part()
                print("%5.1f s  %s" % (time.time() - start, part.__name__))
        finally:
            test.browser.close()
    print("same: %d inputs answered as by the command" % test.equal)
    print("same: %d passed, %d failed" % (test.passed, test.failed))
    return 1 if test.failed or test.equal < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
