#!/usr/bin/env python3
"""Kinds of secrets times the ways in which a name and its value are written, and harmless names and words in the same ways: how many of the first are shown and how many of the
second are changed. usage: test_dresses.py BINARY [--list]. Both are to be 0. Values are drawn here, so that scanners of repositories find none."""
import base64
import glob
import os
import random
import re
import string
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
draw = random.Random(31)
MARK = "INFO 11-16 12:00:%02d [core.py:%d] Initializing a V1 LLM engine (v0.19.1)"  # between two cases: it stays as it is


def of(alphabet, count):
    """Digits, capitals and small letters are all there when the alphabet has them."""
    while True:
        text = "".join(draw.choice(alphabet) for _ in range(count))
        groups = [group for group in (string.digits, string.ascii_uppercase, string.ascii_lowercase) if set(group) <= set(alphabet)]
        if count < 3 or all(set(text) & set(group) for group in groups):
            return text


def word(count=24): return of(string.ascii_letters + string.digits, count)
def small(count): return of(string.ascii_lowercase + string.digits, count)
def hexa(count): return of("0123456789abcdef", count)
def digits(count): return of("123456789", count)
def letters(count): return of(string.ascii_lowercase, count)


def kinds():
    """name -> value"""
    return {
        # the shape tells, too
        "HF_TOKEN": "hf_" + word(34), "HUGGING_FACE_HUB_TOKEN": "hf_" + word(34), "ANTHROPIC_API_KEY": "sk-ant-api03-" + word(40) + "-" + word(30), "OPENAI_API_KEY": "sk-proj-" + word(48),
        "OPENROUTER_API_KEY": "sk-or-v1-" + hexa(64), "DEEPSEEK_API_KEY": "sk-" + hexa(32), "GITHUB_TOKEN": "ghp_" + word(36), "GH_TOKEN": "github_pat_" + word(22) + "_" + word(59), "GITLAB_TOKEN": "glpat-" + word(20),
        "SLACK_BOT_TOKEN": "xoxb-" + digits(12) + "-" + digits(13) + "-" + word(24), "AWS_ACCESS_KEY_ID": "AKIA" + of(string.ascii_uppercase + "234567", 16), "GOOGLE_API_KEY": "AIza" + word(35), "NPM_TOKEN": "npm_" + word(36),
        "NGC_API_KEY": "nvapi-" + word(64), "DATABRICKS_TOKEN": "dapi" + hexa(32), "VAULT_TOKEN": "hvs." + word(24), "REPLICATE_API_TOKEN": "r8_" + word(37), "GROQ_API_KEY": "gsk_" + word(52),
        "MODELSCOPE_API_TOKEN": "ms-" + "-".join(hexa(n) for n in (8, 4, 4, 4, 12)), "SESSION_TOKEN": "eyJ" + word(30) + ".eyJ" + word(40) + "." + word(43),
        # only the name does
        "VLLM_API_KEY": word(32), "SGLANG_API_KEY": small(20), "AWS_SECRET_ACCESS_KEY": word(20) + "/" + word(19), "AWS_SESSION_TOKEN": word(80), "AWS_BEARER_TOKEN_BEDROCK": "ABSK" + word(60), "AZURE_OPENAI_API_KEY": hexa(32),
        "AZURE_CLIENT_SECRET": word(34), "AZURE_STORAGE_KEY": word(60), "MISTRAL_API_KEY": word(32), "MISTRAL_KEY": small(8), "COHERE_KEY": word(40), "STRIPE_KEY": letters(7), "WANDB_API_KEY": hexa(40), "COMET_API_KEY": word(25),
        "CLEARML_API_SECRET_KEY": word(50), "TAVILY_KEY": small(10), "JINA_API_KEY": word(40), "VOYAGE_API_KEY": word(40), "DASHSCOPE_API_KEY": hexa(32), "MOONSHOT_API_KEY": word(48), "ZHIPUAI_API_KEY": hexa(32) + "." + word(16),
        "HUAWEICLOUD_SDK_AK": of(string.ascii_uppercase + string.digits, 20), "HUAWEICLOUD_SDK_SK": word(40), "MODAL_TOKEN_ID": "ak-" + word(22), "MODAL_TOKEN_SECRET": "as-" + word(22), "RUNPOD_API_KEY": of(string.ascii_uppercase + string.digits, 40),
        "LANGFUSE_SECRET_KEY": "sk-lf-" + "-".join(hexa(n) for n in (8, 4, 4, 4, 12)), "DB_PASSWORD": word(12), "POSTGRES_PASSWORD": letters(9), "MYSQL_PWD": small(10), "REDIS_PASSWORD": letters(8), "GRAFANA_PASS": letters(8), "SMTP_PASS": small(9),
        "KEY_PASSPHRASE": letters(14), "JWT_SECRET": small(12), "DJANGO_SECRET_KEY": word(50), "NEXTAUTH_SECRET": word(43), "WEBHOOK_SECRET": letters(10), "ENCRYPTION_KEY": hexa(64), "SIGNING_KEY": small(16), "API_KEY_2": word(20), "OPENAI_API_KEY_PROD": word(32),
        "TELEGRAM_BOT_TOKEN": digits(9) + ":AA" + word(33), "DISCORD_TOKEN": word(24) + "." + word(6) + "." + word(38), "HEROKU_API_KEY": "-".join(hexa(n) for n in (8, 4, 4, 4, 12)), "ACCESS_TOKEN": letters(12), "SOME_TOKEN": small(8), "OTHER_SECRET": letters(6),
    }


def camel(name):
    parts = name.lower().split("_")
    return parts[0] + "".join(part.capitalize() for part in parts[1:])


def wrapped(form):
    """The terminal cut the value in two."""
    return lambda name, value: form.format(n=name, v=value[:len(value) // 2] + "\n" + value[len(value) // 2:])


def text(form):
    return lambda name, value: form.format(n=name, v=value, l=name.lower(), c=camel(name))


def in_base64(form):
    def dressed(name, value):
        coded = base64.b64encode(form.format(n=name, v=value).encode()).decode()
        return "write_files: content " + coded
    return dressed


ASSIGNED = {
    "variable": "{n}={v}", "export": "export {n}={v}", "quoted": "{n}='{v}'", "before a command": "{n}={v} vllm serve org/m", "docker -e": "docker run -e {n}={v} img", "--env=": "docker run --env={n}={v} img", "dockerfile": "ENV {n} {v}",
    "set -x": "+ export {n}={v}", "declare": 'declare -x {n}="{v}"', "powershell": '$env:{n} = "{v}"', "setx": "setx {n} {v}", "csh": "setenv {n} {v}", "fish": "set -gx {n} {v}", "fish, quoted": "set -Ux {n} '{v}'", "fish, two options": "set -g -x {n} {v}",
    "yaml": "  {n}: {v}", "yaml, quoted": '  {n}: "{v}"', "yaml item": "  - {n}={v}", "yaml tag": "  {n}: !!str {v}", "yaml binary": "  {n}: !!binary {v}", "yaml anchor": "  {n}: &a {v}",
    "json": '{{"{n}": "{v}"}}', "json in json": '{{\\"{n}\\": \\"{v}\\"}}', "python dict": "environ({{'{n}': '{v}', 'HOME': '/root'}})", "namespace": "Namespace({n}='{v}', x=1)", "toml": '{n} = "{v}"', "ini": "{n} = {v}", "go map": 'map[{n}:{v} HOME:/root]',
    "subscript": 'os.environ["{n}"] = "{v}"', "subscript, one quote": "env['{n}']='{v}'", "subscript in a traceback": "    os.environ['{n}'] = '{v}'  # set", "subscript of two": 'config["env"]["{n}"] = "{v}"', "php": "$config['{n}'] => '{v}'",
    "tuple": "('{n}', '{v}')", "tuple in a list": "[('HOME', '/root'), ('{n}', '{v}')]", "call": 'os.environ.setdefault("{n}", "{v}")', "putenv": "os.putenv('{n}', '{v}')", "setter": 'config.set("env", "{n}", "{v}")', "pair": '["{n}", "{v}"]',
    "pair, no blank": '("{n}","{v}")', "full-width colon": "{n}：{v}", "full-width colon and blank": "{n}： {v}", "chinese text": "环境变量{n}：{v}，请勿外传", "full-width equals": "{n}＝{v}",
    "table": "| {n} | {v} |", "table with more columns": "| 1 | {n} | {v} | string |", "table of boxes": "│ {n} │ {v} │", "psql": " {n} | {v}", "arrow": "{n} -> {v}", "double arrow": "{n} => {v}", "sign of an arrow": "{n} → {v}",
    "k8s": "- name: {n}\n  value: {v}", "k8s, quoted": '- name: {n}\n  value: "{v}"', "k8s json": '{{"name": "{n}", "value": "{v}"}}', "query": "https://example.org/x?a=1&{l}={v}&b=2", "helm": "helm install x --set env.{n}={v}", "nul": "A=b\0{n}={v}\0C=d",
    "written line breaks": "A=b\\n{n}={v}\\nC=d", "markdown": "**{n}:** {v}", "markdown code": "`{n}`: `{v}`", "xml": "<{n}>{v}</{n}>", "lower": "{l}={v}", "lower, json": '{{"{l}": "{v}"}}', "camel": "{c}: {v}", "colon and equals": "{n} := {v}",
}


def dresses():
    made = {name: text(form) for name, form in ASSIGNED.items()}
    made["wrapped"] = wrapped("{n}={v}")
    made["wrapped behind a prefix"] = wrapped("export A=b {n}={v}")
    made["base64"] = in_base64("{n}={v}")
    made["base64 of json"] = in_base64('{{"{n}": "{v}"}}')
    made["base64 of lines"] = in_base64("HOME=/root\nexport {n}={v}\nPATH=/bin\n")
    return made


def not_asked(dress, name, value):
    """Where a reader could not tell either."""
    if dress.startswith("lower") or dress == "camel":  # FOO_KEY is a variable; foo_key may be the key of a dictionary
        return name in ("MISTRAL_KEY", "COHERE_KEY", "STRIPE_KEY", "TAVILY_KEY", "GRAFANA_PASS", "MODAL_TOKEN_ID", "HUAWEICLOUD_SDK_AK", "HUAWEICLOUD_SDK_SK")
    if dress == "query":
        return name == "MODAL_TOKEN_ID"
    if dress.startswith("wrapped"):  # a short value of letters, and a word on the next line
        rest = value[len(value) // 2:]
        return len(value) < 16 or rest.isdigit() or (rest.isalpha() and (rest.islower() or rest.isupper()))
    return False


SPOKEN = {  # names as people write them
    "API key: {}": word(), "API Key = {}": word(), "api key is {}": word(), "Access Token: {}": word(), "Secret Access Key: {}": word(40), "Hugging Face access token: {}": "hf_" + word(34), "Your API key: {}": small(12), "client secret: {}": word(),
    "Private key: {}": word(), "密码：{}": letters(9), "密码: {}": small(8), "密碼：{}": small(8), "密钥：{}": word(), "API密钥：{}": word(), "API 密钥: {}": word(), "访问令牌：{}": word(), "口令={}": small(8), "数据库密码为{}": small(8), "密码是 {}": small(9), "密码：{}，勿泄露": small(9),
    "login('{}')": word(), "huggingface_hub.login(\"{}\")": word(), "pwd={}": small(8), "Server=x;Uid=sa;Pwd={};": small(10), "user=a pwd={} host=b": letters(8), "SharedAccessSignature sr=x&sig={}%3D&se=1": word(43), "sig={}%3D": word(43), "sv=2022-11-02&sig={}": word(43),
    "passphrase: {}": "correct horse battery staple", "passphrase = {}": "orange purple seven", "  ssh_passphrase: {}": "many words here", "password: {}": "two words", "passphrase: '{}'": "correct horse battery",
    "mc alias set minio https://minio.example.org admin {}": word(16), "ngrok config add-authtoken {}": word(40), "ngrok authtoken {}": word(40), "--model-loader-extra-config '{{\"sk\":\"{}\"}}'": word(40), "--middleware X-Key={}": word(20),
    "https://open.feishu.cn/open-apis/bot/v2/hook/{}": "-".join(hexa(n) for n in (8, 4, 4, 4, 12)), "--api-key first second {}": small(9), "--api-key one two three four five {} --port 1": word(),
}

HARMLESS = r"""
vllm serve /models/sk-nas01-llama-3-70b-awq --port 8000
pod sk-nas01-llama-3-70b-awq-0 is ready, node sk-gpu-node-12-rack-3-row-4
model cross-encoder/ms-marco-MiniLM-L-12-v2-onnx-quantized-8bit-x is loaded
vllm serve --api-key $KEY meta-llama
for key, value in pairs: print(key, value)
unexpected token: foo, next token: bar, invalid token: </s>, generated token: hello, stop token: "x"
get_token(self) -> str, token -> id, key -> value, keys -> list
| --api-key | The key that clients have to send. | None |
| password | string | required |
| token | id | count |
| HF_TOKEN | - | unset |
fields = ("password", "username", "email"), names = ['api_key', 'token', 'secret']
echo $HF_TOKEN | huggingface-cli login --stdin
cat password | wc -l; generate_password | tee out
cd /root && PWD=/root/work OLDPWD=/ pwd; echo pwd
请求失败：显存不足，密码错误，令牌数：8192，每秒令牌：35.2
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"; os.environ["HF_HOME"] = "/data/hf"; env['HF_TOKEN'] is missing
d["token"] = 5; row["key"] = "value"; config["eos_token"] = "</s>"; x["cache_key"] = "a1b2c3d4e5f6"
("max_tokens", 8192), ("tokenizer", "org/tokenizer-x"), ('pad_token', '<pad>'), ("key", "value")
set -e; set -gx CUDA_HOME /usr/local/cuda; set -x PATH /usr/bin
passphrase required: no; password protected: yes; secret santa; the passphrase for the key is asked below
SSL_KEY=/etc/ssl/key.pem SSH_KEY=~/.ssh/id_ed25519 PRIMARY_KEY=id CACHE_KEY=abcdef SORT_KEY=time PARTITION_KEY=day
ACCESS_TOKEN_EXPIRE_MINUTES=30 EOS_TOKEN_ID=151645 API_KEY_HEADER_NAME=X-Key MAX_TOKENS_PER_REQUEST=100 TOKEN_COUNT=12
aGVsbG8gd29ybGQsIHRoaXMgaXMgcGxhaW4gdGV4dA== is base64 of a sentence
docker.io/library/python:3.12-slim@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
Loading weights: model-00001-of-00030.safetensors, sk_layer, ms-swift, sk-learn==1.5.2, ms-vscode-remote.remote-containers
login(token) failed; login() returned; huggingface-cli login; wandb login; docker login ghcr.io
the API key is missing; your API key was not found; no access token is set; the session key is None
"""
BELOW = "password:\n  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", "password:\n  CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 1.10 GiB free)\n", \
    "Enter passphrase:\n\n    ERROR 11-16 12:00:00 [core.py:2] EngineCore failed to start.\n", "sudo password: \n  INFO 11-16 12:00:00 [api_server.py:1] Started server process [1]\n"
NOT_THE_REST = "HF_TOKEN=hf_abc\nQwen3", "API_KEY=abcdefgh\nservices:", "API_KEY=abcdefgh\nEOF", "DB_PASSWORD=abcdefgh12\n/models/Qwen3-8B-Instruct", "API_KEY=abcdefghij\nllama-3-8b"  # the line below a secret is no part of it
PLAIN_NAMES = {"max_tokens": "8192", "tokenizer": "org/tokenizer-x", "eos_token": "</s>", "pad_token": "x", "CACHE_KEY": "ab12cd34ef56", "primary_key": "id", "token_count": "12345678", "MAX_TOKENS": "8192", "secretName": "my-secret-1a2b3c", "HF_HOME": "/data/hf",
               "api_key": "None", "hf_token": "null", "bytes_per_token": "147456", "HF_TOKEN": "$HF_TOKEN", "PASSWORD_FILE": "/run/secrets/p", "token_type": "bearer", "model": "org/model-7b-1a2b3c4d", "KEYS": "4"}


def visible(given):
    """Control characters as `redact` writes them."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: "\\r" if found.group() == "\r" else "\\x%02x" % ord(found.group()), given)


def redacted(binary, given):
    done = subprocess.run([binary, "redact"], input=given.encode(), stdout=subprocess.PIPE, timeout=120)
    if done.returncode:
        raise SystemExit("redact ends with %d" % done.returncode)
    return done.stdout.decode()


def together(binary, cases):
    """The cases in one text, a line of a log before each. What comes out of each; None where that line was lost."""
    marks = [MARK % (i % 60, i) for i in range(len(cases) + 1)]
    out = redacted(binary, "".join(marks[i] + "\n" + case + "\n" for i, case in enumerate(cases)) + marks[-1] + "\n")
    places = [out.find(mark + "\n") for mark in marks]
    return [out[places[i] + len(marks[i]) + 1:places[i + 1]] if -1 < places[i] < places[i + 1] else None for i in range(len(cases))]


def leaks(value, shown):
    """Five letters or digits in a row of it are there (all of a shorter part), and not only of the prefix that says what it is."""
    parts, own = value.replace("\n", ""), max((len(p) for p in ("hf_", "sk-", "ghp_", "github_pat_", "glpat-", "xoxb-", "AKIA", "AIza", "npm_", "nvapi-", "dapi", "hvs.", "r8_", "gsk_", "ms-", "eyJ", "sk-lf-") if value.startswith(p)), default=0)
    own -= 2 if own else 0
    return any(parts[i:i + 5] in shown for i in range(own + 2 if own else 0, len(parts) - 4))


def shown_by(binary):
    """[(dress, name, what came out)] and how many were asked"""
    shown, asked = [], 0
    for dress, form in dresses().items():
        chosen = [(name, value) for name, value in kinds().items() if not not_asked(dress, name, value)]
        cases = [form(name, value) for name, value in chosen]
        asked += len(cases)
        for (name, value), case, out in zip(chosen, cases, together(binary, cases)):
            if out is None or leaks(value, out) or (dress.startswith("base64") and case.split()[-1][-12:] in out):
                shown.append((dress, name, out))
    spoken = [(form, value, form.format(value)) for form, value in SPOKEN.items()]
    asked += len(spoken)
    for (form, value, _), out in zip(spoken, together(binary, [case for _, _, case in spoken])):
        if out is None or any(part in out for part in (value.split() if " " in value else [value[i:i + 5] for i in range(3, len(value) - 4)])):
            shown.append(("as people write it", form, out))
    return shown, asked


def changed_by(binary):
    """[(what, line)] and how many lines were asked"""
    changed, asked = [], 0
    forms = [form for dress, form in dresses().items() if dress not in ("query", "yaml binary", "php", "k8s", "xml", "arrow", "wrapped", "wrapped behind a prefix")]
    cases = HARMLESS.strip().splitlines() + [text.rstrip("\n") for text in BELOW] + [form(name, value) for form in forms for name, value in PLAIN_NAMES.items()]
    for case, out in zip(cases, together(binary, cases)):
        asked += 1
        if out != visible(case) + "\n":
            changed.append(("harmless", case, out))
    for case, out in zip(NOT_THE_REST, together(binary, NOT_THE_REST)):
        asked += 1
        if out is None or out.split("\n")[1] != case.split("\n")[1]:
            changed.append(("below a secret", case, out))
    for pattern in ("tests/evidence/reports/*.log", "tests/fixtures/**/*.log", "tests/fixtures/**/*.txt", "tests/fixtures/**/*.json", "tests/fixtures/starts/*", "tests/fixtures/failing/*"):
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                given = file.read().decode("utf-8", "replace")
            asked += given.count("\n")
            lines = zip(visible(given).split("\n"), redacted(binary, given).split("\n"))
            changed += [(os.path.relpath(path, ROOT), before, after) for before, after in lines if before != after]
    return changed, asked


def main():
    binary = os.path.abspath(sys.argv[1])
    shown, asked = shown_by(binary)
    changed, lines = changed_by(binary)
    many = 10000 if "--list" in sys.argv else 40
    for kind, what, out in (shown + changed)[:many]:
        print("%s: %s: %r" % (kind, what, out if out is None else out[:200]))
    print("%d kinds in %d dresses: %d of %d shown; %d of %d harmless lines changed" % (len(kinds()), len(dresses()) + 1, len(shown), asked, len(changed), lines))
    return 1 if shown or changed else 0


if __name__ == "__main__":
    sys.exit(main())
