#!/usr/bin/env python3
"""The gates, run as they are written: try_gates.py WHEEL

The commands are taken out of action.yml, examples/gates, .pre-commit-hooks.yaml and the guide, and run by what would run them:
bash as GitHub and GitLab call it, pre-commit itself, sh as the initContainer. The wheel given here is the one in ci/; pre-commit builds this tree at a
commit. The files are checked against the schemas of GitHub and GitLab (check-jsonschema has them), SARIF by sarif-tools, and against the
schemas of SARIF and of production-stack's chart where SARIF_SCHEMA and VALUES_SCHEMA name them. Makes a virtualenv; 77 when its
packages cannot be had."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "tests", "fixtures")
NEEDED = ["pyyaml", "jsonschema", "check-jsonschema", "pre-commit", "sarif-tools"]
ANNOTATION = re.compile(r"^::(error|warning|notice) file=([^,:]+),line=(\d+),title=([^:]+)::(.+)$")
COMPOSE = """services:
  chat:
    image: vllm/vllm-openai:v0.19.1
    command: --model acme/small-llama --max-model-len %s
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.19.1
          args: ["--model", "acme/small-llama", "--kv-cache-memory-bytes", "%s"]
          resources: {limits: {nvidia.com/gpu: 1}}
"""


class Gates:
    def __init__(self, wheel, work):
        self.wheel, self.work, self.passed, self.failed = wheel, work, 0, 0
        self.bin = os.path.dirname(sys.executable)
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.path.join(work, "home"), "LC_ALL": "C.UTF-8", "RUNNER_TEMP": os.path.join(work, "runner"),
                    "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CACHE_DIR": os.path.join(work, "pip"),
                    "GIT_CONFIG_GLOBAL": os.path.join(work, "gitconfig"), "HF_HOME": self.cache()}
        for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_TRUSTED_HOST", "CC", "CCACHE_DIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        for name in ("home", "runner"):
            os.makedirs(os.path.join(work, name))
        # Where pip is configured is a matter of this machine, not of the gates.
        for place in (".config/pip", ".pip"):
            there = os.path.join(os.path.expanduser("~"), place)
            if os.path.isdir(there):
                shutil.copytree(there, os.path.join(work, "home", place))
        with open(self.env["GIT_CONFIG_GLOBAL"], "w") as f:
            f.write("[user]\nname = gate\nemail = gate@localhost\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n")

    def cache(self):
        """A Hugging Face cache with the models that the examples name: the shape of one is that of a small model."""
        for name in ("Qwen/Qwen3-8B", "acme/small-llama"):
            place = os.path.join(self.work, "hf", "hub", "models--" + name.replace("/", "--"))
            shutil.copytree(os.path.join(FIXTURES, "models", "small-llama"), os.path.join(place, "snapshots", "a" * 40))
            os.makedirs(os.path.join(place, "refs"))
            with open(os.path.join(place, "refs", "main"), "w") as f:
                f.write("a" * 40)
        return os.path.join(self.work, "hf")

    def claim(self, sentence, holds, seen=""):
        print("%s %s" % ("ok  " if holds else "FAIL", sentence), flush=True)
        if not holds:
            print("     seen: %s" % str(seen)[-1500:])
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)

    def run(self, words, folder, **more):
        return subprocess.run(words, cwd=folder, env=dict(self.env, **more), capture_output=True, text=True)

    def workspace(self, name, context="8192", cache="8589934592"):
        """A checkout with two deployment files and the wheel; with the defaults both start."""
        folder = os.path.join(self.work, name)
        for place in ("deploy", "ci"):
            os.makedirs(os.path.join(folder, place))
        shutil.copy(self.wheel, os.path.join(folder, "ci"))
        for path, text in (("compose.yaml", COMPOSE % context), ("deploy/chat.yaml", DEPLOYMENT % cache)):
            with open(os.path.join(folder, path), "w") as f:
                f.write(text)
        return folder

    def python(self):
        """PATH with the Python of a runner first; one is enough for all of them."""
        folder = os.path.join(self.work, "python")
        if not os.path.isdir(folder):
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        return os.path.join(folder, "bin") + ":" + self.env["PATH"]

    # ---- GitHub ------------------------------------------------------------------------------------------------------

    def action(self, yaml):
        with open(os.path.join(ROOT, "action.yml")) as f:
            action = yaml.safe_load(f)

        def steps(folder, given):
            """The composite steps as the runner would: inputs put in, `shell: bash` is bash --noprofile --norc -eo pipefail."""
            inputs = {name: given.get(name, about.get("default", "")) for name, about in action["inputs"].items()}
            inputs["package"] = self.wheel  # without it the action builds its own source: tests/packages/try_installs.sh
            put = lambda text: re.sub(r"\$\{\{\s*inputs\.(\w+)\s*\}\}", lambda m: inputs[m.group(1)], text)
            for number, step in enumerate(action["runs"]["steps"]):
                script = os.path.join(self.work, "step%d.sh" % number)
                with open(script, "w") as f:
                    f.write(put(step["run"]))
                done = self.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script], folder,
                                **{name: put(value) for name, value in step.get("env", {}).items()})
                if done.returncode:
                    break
            return done

        bad, good = self.workspace("action-bad", cache="64424509440"), self.workspace("action-good")
        done = steps(bad, {"files": "compose.yaml deploy/*.yaml", "gpu": "l4", "options": "--offline"})
        notes = [ANNOTATION.match(line) for line in done.stdout.splitlines()]
        self.claim("action: a file that does not start fails the job", done.returncode == 1, done)
        self.claim("action: one annotation, at its file and line", len(notes) == 1 and notes[0] and notes[0].group(1, 2, 3) == ("error", "deploy/chat.yaml", "12"),
                   done.stdout)
        done = steps(good, {"files": "compose.yaml deploy/*.yaml", "gpu": "l4"})
        self.claim("action: files that start are silent and pass", (done.returncode, done.stdout) == (0, ""), done)
        done = steps(good, {"files": "compose.yaml"})
        self.claim("action: without a GPU it says what is missing", done.returncode == 3 and "gpu" in (done.stdout + done.stderr).lower(), done)

    def workflow(self, yaml):
        with open(os.path.join(ROOT, "examples", "gates", "github-workflow.yml")) as f:
            job = yaml.safe_load(f)["jobs"]["check"]
        folder = self.workspace("workflow", cache="64424509440")
        path, failed, codes = self.python(), False, []
        for step in job["steps"]:
            if "run" in step and (not failed or step.get("if") == "always()"):
                done = self.run(["bash", "-e", "-c", step["run"]], folder, PATH=path)
                codes.append(done.returncode)
                failed |= done.returncode != 0
                if "--format github" in step["run"]:
                    self.editor(done.stdout)
                    self.claim("workflow: annotations come out", any(ANNOTATION.match(line) for line in done.stdout.splitlines()), done)
        self.claim("workflow: it installs, fails at the finding, and still writes SARIF", codes == [0, 1, 0], codes)
        self.sarif(os.path.join(folder, "oomsight.sarif"))

    def editor(self, annotations):
        """The pattern of VS Code's task reads what the command prints."""
        with open(os.path.join(ROOT, "examples", "editor", "tasks.json")) as f:
            pattern = json.load(f)["tasks"][0]["problemMatcher"]["pattern"]
        found = re.search(pattern["regexp"], annotations, re.M)
        seen = found and [found.group(pattern[name]) for name in ("severity", "file", "line")]
        self.claim("VS Code: a finding has its severity, file and line", seen == ["error", "deploy/chat.yaml", "12"], annotations)

    def sarif(self, path):
        with open(path) as f:
            log = json.load(f)
        result = log["runs"][0]["results"][0]
        place = result["locations"][0]["physicalLocation"]
        self.claim("SARIF: the finding has rule, level, file and line",
                   (result["ruleId"], result["level"], place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("does-not-start", "error", "deploy/chat.yaml", 12), result)
        done = self.run([os.path.join(self.bin, "sarif"), "summary", path], self.work)
        self.claim("SARIF: sarif-tools reads it", done.returncode == 0 and "does-not-start" in done.stdout, done)
        if os.environ.get("SARIF_SCHEMA"):
            import jsonschema
            with open(os.environ["SARIF_SCHEMA"]) as f:
                faults = list(jsonschema.Draft7Validator(json.load(f)).iter_errors(log))
            self.claim("SARIF: it is as the schema of 2.1.0 says", not faults, faults)
        else:
            print("skip SARIF: no schema in SARIF_SCHEMA")

    # ---- the others --------------------------------------------------------------------------------------------------

    def gitlab(self, yaml):
        with open(os.path.join(ROOT, "examples", "gates", "gitlab-ci.yml")) as f:
            job = yaml.safe_load(f)["oomsight"]
        for name, cache, code in (("bad", "64424509440", 1), ("good", "8589934592", 0)):
            folder = self.workspace("gitlab-" + name, cache=cache)
            script = "set -eo pipefail\n" + "\n".join(job["script"])
            done = self.run(["bash", "-c", script], folder, PATH=self.python(), **job["variables"])
            self.claim("GitLab: the job ends with %d" % code, done.returncode == code, done)
            self.claim("GitLab: it names file and line", "deploy/chat.yaml:12" in done.stdout if code else "0 do not fit" in done.stdout, done)

    def pre_commit(self, yaml):
        """The real pre-commit: a commit of this repository, and a repository that uses it."""
        hooks = os.path.join(self.work, "hooks")
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        os.makedirs(hooks)
        subprocess.run(["xargs", "-0", "cp", "--parents", "-t", hooks], cwd=ROOT, input=tracked, check=True)
        git = lambda folder, *words: subprocess.run(("git",) + words, cwd=folder, env=self.env, check=True, capture_output=True)
        with open(os.path.join(ROOT, "docs", "how-to", "check-deployments.md")) as f:
            shown = re.search(r"```yaml\n(# \.pre-commit-config\.yaml\n.*?)```", f.read(), re.S).group(1)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a commit"]):
            git(hooks, *words)
        commit = git(hooks, "rev-parse", "HEAD").stdout.decode().strip()
        for name, cache, code in (("good", "8589934592", 0), ("bad", "64424509440", 1)):
            folder = self.workspace("pre-commit-" + name, cache=cache)
            shutil.copytree(os.path.join(FIXTURES, "models", "small-llama"), os.path.join(folder, "models", "acme", "small-llama"))
            with open(os.path.join(folder, ".pre-commit-config.yaml"), "w") as f:
                f.write(shown.replace("<this repository>", hooks).replace("COMMIT", commit))
            git(folder, "init", "-q")
            git(folder, "add", "-A")
            done = self.run([os.path.join(self.bin, "pre-commit"), "run", "--all-files", "--color", "never"], folder)
            self.claim("pre-commit: the hook %s" % ("stops a commit that does not start" if code else "lets a commit pass"), done.returncode == code, done)
            if code:
                self.claim("pre-commit: it names file and line", "deploy/chat.yaml:12" in done.stdout, done)

    def init_container(self, yaml):
        with open(os.path.join(ROOT, "examples", "gates", "production-stack-values.yaml")) as f:
            values = yaml.safe_load(f)
        spec = values["servingEngineSpec"]["modelSpec"][0]
        gate = spec["initContainer"]
        start = lambda words: self.run(words, self.work, PATH=self.python())  # where the workflow has installed it
        words = gate["command"] + gate["args"]
        done = start(words)
        self.claim("initContainer: a model that starts lets the pod go on", done.returncode == 0 and "WILL START" in done.stdout, done)
        done = start([word.replace("--max-model-len 16384", "--max-model-len 16384 --kv-cache-memory-bytes 64424509440") for word in words])
        self.claim("initContainer: one that does not keeps it in Init:Error, with the reason", done.returncode != 0 and "WILL NOT START" in done.stdout and "kv_alloc" in done.stdout, done)
        done = start([word.replace("Qwen/Qwen3-8B", "/no/such/model") for word in words])
        self.claim("initContainer: one that cannot be read is left to the engine", done.returncode == 0 and done.stderr, done)
        told = " ".join(words)
        for key, flag in (("maxModelLen", "--max-model-len"), ("gpuMemoryUtilization", "--gpu-memory-utilization")):
            self.claim("initContainer: %s is what the chart is told" % flag, "%s %s" % (flag, spec["vllmConfig"][key]) in told, told)
        self.claim("initContainer: so are model and version", spec["modelURL"] in told and "--vllm %s " % spec["tag"].lstrip("v") in told, told)
        done = start(["oomsight", "check", "--gpu", "l4", os.path.join(ROOT, "examples", "gates", "production-stack-values.yaml")])
        self.claim("check plans the values file, too", done.returncode == 0 and "Helm values chat: vllm serve Qwen/Qwen3-8B" in done.stdout, done)
        if os.environ.get("VALUES_SCHEMA"):
            done = self.run([os.path.join(self.bin, "check-jsonschema"), "--schemafile", os.environ["VALUES_SCHEMA"],
                             os.path.join(ROOT, "examples", "gates", "production-stack-values.yaml")], self.work)
            self.claim("initContainer: the values are as the chart's schema says", done.returncode == 0, done)
        else:
            print("skip values: no schema in VALUES_SCHEMA")

    def schemas(self):
        for kind, path in (("github-actions", "action.yml"), ("github-workflows", "examples/gates/github-workflow.yml"), ("gitlab-ci", "examples/gates/gitlab-ci.yml"),
                           ("github-workflows", ".github/workflows/release.yml"), ("github-issue-forms", "examples/issues/out-of-memory.yml")):
            done = self.run([os.path.join(self.bin, "check-jsonschema"), "--builtin-schema", "vendor." + kind, os.path.join(ROOT, path)], self.work)
            self.claim("%s is as its schema says" % path, done.returncode == 0, done)
        done = self.run([os.path.join(self.bin, "pre-commit"), "validate-manifest", os.path.join(ROOT, ".pre-commit-hooks.yaml")], self.work)
        self.claim(".pre-commit-hooks.yaml is as pre-commit says", done.returncode == 0, done)


def inside(wheel):
    import yaml

    with tempfile.TemporaryDirectory() as work:
        gates = Gates(wheel, work)
        gates.schemas()
        for gate in (gates.action, gates.workflow, gates.gitlab, gates.pre_commit, gates.init_container):
            gate(yaml)
    print("gates: %d claims hold, %d do not" % (gates.passed, gates.failed))
    return 1 if gates.failed else 0


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--inside":
        return inside(sys.argv[2])
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([sys.executable, "-m", "venv", work], check=True)
        got = subprocess.run([os.path.join(work, "bin", "pip"), "install", "-q", "--disable-pip-version-check"] + NEEDED, capture_output=True, text=True)
        if got.returncode:
            print("%s cannot be installed here" % ", ".join(NEEDED))
            return 77
        return subprocess.run([os.path.join(work, "bin", "python"), os.path.abspath(__file__), "--inside", os.path.abspath(sys.argv[1])]).returncode


if __name__ == "__main__":
    sys.exit(main())
