#!/usr/bin/env python3
"""Every kind of secret that `oomsight redact` is to hide, what it is to leave alone, and what its worst input costs.
usage: test_kinds.py BINARY [hidden|kept|cost]. Values are drawn here, so that scanners of repositories find none."""
import base64
import os
import random
import string
import subprocess
import sys
import urllib.parse

LIMIT_SECONDS = 0.5  # of processor time for a megabyte
NOT_COVERED = {}  # kind -> why; at most six

draw = random.Random(20)


def of(alphabet, count):
    """Digits, capitals and small letters are all there when the alphabet has them."""
    while True:
        text = "".join(draw.choice(alphabet) for _ in range(count))
        groups = [group for group in (string.digits, string.ascii_uppercase, string.ascii_lowercase) if set(group) <= set(alphabet)]
        if count < 3 or all(set(text) & set(group) for group in groups):
            return text


def word(count=24): return of(string.ascii_letters + string.digits, count)
def hexa(count): return of("0123456789abcdef", count)
def digits(count): return of("123456789", count)
def b64(text): return base64.b64encode(text.encode()).decode()


def kinds():
    """(kind, text with {} where the secret is, the secret)"""
    shapes = {
        "hugging face": "hf_" + word(34), "hugging face oauth": "hf_oauth_" + word(40), "hugging face jwt": "hf_jwt_" + word(30) + "." + word(40), "anthropic": "sk-ant-api03-" + word(40) + "-" + word(30),
        "openai": "sk-proj-" + word(40), "openrouter": "sk-or-v1-" + hexa(64), "github": "ghp_" + word(36), "github app": "ghs_" + word(36), "github fine": "github_pat_" + word(22) + "_" + word(59),
        "gitlab": "glpat-" + word(20), "gitlab runner": "glrt-" + word(20), "gitlab deploy": "gldt-" + word(20), "slack bot": "xoxb-" + digits(12) + "-" + digits(13) + "-" + word(24),
        "slack refresh": "xoxe.xoxp-1-" + word(40), "slack app": "xapp-1-" + word(11) + "-" + digits(13), "aws id": "AKIA" + of(string.ascii_uppercase + "234567", 16), "aws temporary id": "ASIA" + of(string.ascii_uppercase + "234567", 16),
        "google api": "AIza" + word(35), "google oauth": "GOCSPX-" + word(28), "google access": "ya29." + word(60), "jwt": "eyJ" + word(30) + ".eyJ" + word(40) + "." + word(43), "npm": "npm_" + word(36),
        "pypi": "pypi-" + word(80), "nvidia": "nvapi-" + word(64), "databricks": "dapi" + hexa(32), "vault service": "hvs." + word(24), "vault batch": "hvb." + word(60), "replicate": "r8_" + word(37),
        "together": "tgp_v1_" + word(43), "fireworks": "fw_" + word(24), "groq": "gsk_" + word(52), "langsmith": "lsv2_pt_" + hexa(32) + "_" + hexa(10), "stripe": "sk_live_" + word(24), "stripe hook": "whsec_" + word(32),
        "twilio": "SK" + hexa(32), "sendgrid": "SG." + word(22) + "." + word(43), "digital ocean": "dop_v1_" + hexa(64), "linear": "lin_api_" + word(40), "fly": "FlyV1 fm2_" + word(80), "docker": "dckr_pat_" + word(27),
        "weights and biases": "wandb_v1_" + word(40), "xai": "xai-" + word(80), "perplexity": "pplx-" + word(48), "age": "AGE-SECRET-KEY-1" + of(string.ascii_uppercase + string.digits, 58), "telegram": digits(9) + ":AA" + word(33),
        "grafana": "glsa_" + word(32) + "_" + hexa(8), "pinecone": "pcsk_" + word(40), "tailscale": "tskey-auth-" + word(30),
    }
    for kind, secret in shapes.items():
        yield kind, "INFO 11-16 12:00:00 [x.py:1] got {} here", secret
    one_line = {
        "variable": "export OPENAI_API_KEY={}", "variable before a command": "HF_TOKEN={} vllm serve org/m", "docker -e": "docker run -e HF_TOKEN={} img", "dockerfile": "ENV HF_TOKEN {}", "flag": "vllm serve m --api-key {} --port 1",
        "flag with =": "vllm serve m --api-key={}", "second value of a flag": "vllm serve m --api-key firstkeyaaaa {} --port 1", "json list": '["vllm", "serve", "m", "--api-key", "{}"]', "tuple": "args: ('--api-key', '{}')",
        "namespace": "Namespace(api_key='{}', x=1)", "namespace list": "Namespace(api_key=['{}'], x=1)", "bytes": "api_key=b'{}'", "SecretStr": "{{'api_key': SecretStr('{}')}}", "json": '{{"api_key": "{}"}}',
        "json in json": '{{\\"api_key\\": \\"{}\\"}}', "json in json in json": '\\\\\\"api_key\\\\\\": \\\\\\"{}\\\\\\"', "header": "x-api-key: {}", "bearer": 'curl -H "Authorization: Bearer {}"', "token without blank": "token:{}",
        "camel": "apiKey: {}", "points": "spring.datasource.password={}", "toml": 'password = "{}"', "xml": "<password>{}</password>", "xml attribute": '<x password="{}"/>', "sentence": "the password is {}",
        "netrc": "machine api.example.org login somebody password {}", "curl -u": "curl -u somebody:{} https://example.org", "mysql -p": "mysql -p{} -u root", "sshpass": "sshpass -p {} ssh host", "docker login": "docker login -u me -p {} ghcr.io",
        "redis-cli": "redis-cli -a {} ping", "PGPASSWORD": "PGPASSWORD={} psql", "MYSQL_PWD": "MYSQL_PWD={}", "_PASS": "GRAFANA_PASS={}", "_KEY": "COHERE_KEY={}", "address": "https://somebody:{}@example.org/x",
        "address of a database": "DATABASE_URL=postgres://u:{}@h/db", "address without a user": "redis://:{}@h", "parameter": "https://example.org/x?a=1&access_token={}&b=2", "cookie": "Cookie: session={}", "set-cookie": "Set-Cookie: sid={}; HttpOnly",
        "aws secret": "AWS_SECRET_ACCESS_KEY={}", "aws session": "aws_session_token = {}", "azure": "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={}==;EndpointSuffix=core.windows.net", "azure sas": "https://a.blob.core.windows.net/c?sv=2022&sig={}%3D",
        "sentry": "https://{}@o1.ingest.sentry.io/1", "slack hook": "https://hooks.slack.com/services/{}", "teams hook": "https://o.webhook.office.com/webhookb2/{}", "telegram address": "https://api.telegram.org/bot{}/send",
        "registry login": '"auth": "{}"', "registry logins": ".dockerconfigjson: {}", "url-encoded parameter": "api_key%3D{}%26x", "kubectl literal": "kubectl create secret generic s --from-literal=anything={}", "name and value": '{{"name": "HF_TOKEN", "value": "{}"}}',
        "value and name": '{{"value": "{}", "name": "HF_TOKEN"}}', "secret in a line": '{{"apiVersion":"v1","data":{{"any":"{}"}},"kind":"Secret"}}', "wandb login": "wandb login {}", "setenv": "setenv API_KEY {}", "three quotes": 'password = """{}"""',
        "openssl": "openssl rsa -passin pass:{} -in k.pem",
    }
    for kind, text in one_line.items():
        yield kind, text, hexa(40) if kind in ("wandb login", "sentry") else word()
    several_lines = {
        "name, value below": "- name: HF_TOKEN\n  value: {}\n", "name, quoted value below": '- name: VLLM_API_KEY\n  value: "{}"\n', "value, name below": "- value: {}\n  name: HF_TOKEN\n", "name, value below in json": '{{\n  "name": "HF_TOKEN",\n  "value": "{}"\n}}\n',
        "name, value below in hcl": 'env {{\n  name  = "HF_TOKEN"\n  value = "{}"\n}}\n', "block": "password: |\n  {}\n", "folded block": "api_key: >-\n    {}\n", "on the next line": "password:\n  {}\n", "list below": "api_keys:\n  - {}\n",
        "continued line": "vllm serve m --api-key \\\n  {} --port 1\n", "item below a flag": "- --api-key\n- {}\n- --port\n", "json item below a flag": '[\n "--api-key",\n "{}",\n "--port"\n]\n', "here document": "cat <<EOF > .env\nHF_TOKEN={}\nEOF\n",
        "netrc lines": "machine example.org\n  login me\n  password {}\n", "secret data": "apiVersion: v1\nkind: Secret\ndata:\n  any: {}==\n", "secret stringData": "kind: Secret\nstringData:\n  any: {}\n", "secret block": "kind: Secret\nstringData:\n  any: |\n    {}\n",
        "quoted over lines": "password: \"first\n  {}\"\n", "continued curl": "curl \\\n  -u somebody:{} \\\n  https://example.org\n", "openssh key": "-----BEGIN OPENSSH PRIVATE KEY-----\n{0}\n{0}\n-----END OPENSSH PRIVATE KEY-----\n",
        "rsa key": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{}=\n-----END RSA PRIVATE KEY-----\n", "key of a service account": '"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n"',
        "pgp key": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----\n", "putty key": "Private-Lines: 1\n{}\nPrivate-MAC: 1\n", "key without an end": "-----BEGIN PRIVATE KEY-----\n{0}\nINFO ready\n{0}\n",
        "key in a log": "(a) -----BEGIN PRIVATE KEY-----\n(a) {0}\n(a) {0}\n(a) -----END PRIVATE KEY-----\n",
    }
    for kind, text in several_lines.items():
        yield kind, text, word(64 if "key" in kind else 24)
    yield "secret as kubectl prints it", "apiVersion: v1\ndata:\n  any: {}\nkind: Secret\n", b64("some:" + word(20) + "x")
    yield "aws pair", "AKIA" + of(string.ascii_uppercase + "234567", 16) + ":{}", word(20) + "/" + word(19)
    yield "password with @ and /", "https://somebody:{}@example.org/x", "p@" + word(6) + ":" + word(5) + "/9"
    yield "password with &", "password={}", "Tr" + word(6) + "&3" + word(4)
    yield "password of digits", "password: {}", digits(8)
    yield "key of digits", "API_KEY={}", digits(12)
    yield "token of digits", "HF_TOKEN={}", digits(12)
    yield "basic", "Authorization: Basic {}", b64("somebody:" + word(12))
    yield "base64", "x {}", b64("hf_" + word(34))
    yield "url-encoded", "x {}", "hf%5F" + word(34)
    yield "glued", "token{}", "hf_" + word(34)
    yield "colours inside", "x {} y", "hf_" + word(10) + "\x1b[0m" + word(24)
    yield "zero width inside", "x {} y", "hf_" + word(10) + "\u200b" + word(24)
    yield "cut by a line end", "x {} y", "hf_" + word(20) + "\n" + word(14)
    yield "url-encoded json", "q=" + urllib.parse.quote('{"api_key":"') + "{}%22%7D", word()


def redacted(binary, text):
    done = subprocess.run([binary, "redact"], input=text.encode(), stdout=subprocess.PIPE, timeout=60)
    if done.returncode:
        raise SystemExit("redact ends with %d: %r" % (done.returncode, text[:80]))
    return done.stdout.decode()


def leaks(secret, shown):
    """Eight bytes of it are still there, and not only of the prefix that tells what it is."""
    prefixes = "github_pat_ AGE-SECRET-KEY-"
    return any(secret[i:i + 8] in shown and secret[i:i + 8] not in prefixes for i in range(3, max(4, len(secret) - 7)))


def hidden(binary):
    seen, bad = set(), 0
    for kind, text, secret in kinds():
        seen.add(kind)
        shown = redacted(binary, text.format(secret) + "\n")
        if leaks(secret, shown) != (kind in NOT_COVERED):
            bad += 1
            print("%s: %r" % (kind, shown[:160]))
    print("%d kinds, %d not as they should be, %d not covered" % (len(seen), bad, len(NOT_COVERED)))
    return bad == 0 and len(seen) >= 104 and len(NOT_COVERED) <= 6


ORDINARY = r"""
INFO 11-16 12:00:00 [kv_cache_utils.py:1087] GPU KV cache size: 226,000 tokens
INFO 11-16 12:00:00 [kv_cache_utils.py:1091] Maximum concurrency for 40,960 tokens per request: 5.52x
tokens: 226000, prompt tokens: 12, num_cached_tokens=0, max_total_num_tokens=431234, bytes_per_token=147456
vllm serve Qwen/Qwen3-8B --max-num-batched-tokens 8192 --max-model-len 40960 --tokenizer Qwen/Qwen3-8B --tokenizer-mode auto
python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --chunked-prefill-size 4096 --max-total-tokens 65536
--long-prefill-token-threshold 4096 --skip-tokenizer-init --num-speculative-tokens 3 --served-model-name sk-learn
Using cache directory: /root/.cache/vllm/torch_compile_cache/0a1b2c3d4e/rank_0_0/backbone for vLLM's torch.compile
Cache the graph of shape 8192 for later use, key: fx3v6k2wq, cache_key=fzmq2p7, hash 5e5f0a7d9c2b
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
non-default args: {'model': 'Qwen/Qwen3-8B', 'api_key': None, 'max_model_len': 8192, 'hf_token': None, 'revision': 'b968826d9c46dd6066d109eabc6255188de91218'}
HF_TOKEN=$HF_TOKEN VLLM_API_KEY=${KEY} vllm serve m --api-key "$VLLM_API_KEY"
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.10 GiB is free.
  File "/usr/lib/python3/site-packages/vllm/v1/worker/gpu_worker.py", line 233, in determine_available_memory
eos_token_id=151645, pad_token='<|endoftext|>', image_token_id: 151655, "bos_token": "<s>", unk_token: null
self_attn.k_proj.weight, mlp.key_proj, key_cache, kv_cache_dtype=fp8, key: value, keys=4, primary key: 12
error: argument --api-key: expected at least one argument
The --api-key flag is required when the server is public. Pass the token in the header.
AssertionError: forward pass: 12 ms, pass 3 of 4, password-file /run/p, PWD=/root OLDPWD=/home
GET http://localhost:8000/v1/models 200 OK; ssh://git@github.com/org/repo; https://host:8443/a/@scope/x
docker run -u 1000:1000 -p 8000:8000 --gpus all -v ~/.cache/huggingface:/root/.cache/huggingface vllm/vllm-openai:v0.19.1 --model m
CUDA_VISIBLE_DEVICES=0,1 NCCL_P2P_DISABLE=1 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
100%|██████████| 4/4 [00:03<00:00,  1.25it/s]  20%3.5 %2Fx%20y
commit d7bc4c61c0ffee00d7bc4c61c0ffee00d7bc4c61, uuid 123e4567-e89b-12d3-a456-426614174000, GPU-5c831dcd-0000-1111-2222-333344445555
curl -s http://localhost:8000/v1/completions -d '{"max_tokens": 128, "stop_token_ids": [1], "prompt": "the token is short"}'
"""
MANIFEST = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: vllm
spec:
  template:
    spec:
      imagePullSecrets:
      - name: registry
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.19.1
        args:
        - --model
        - Qwen/Qwen3-8B
        - --max-num-batched-tokens
        - "8192"
        env:
        - name: HF_TOKEN
          valueFrom:
            secretKeyRef:
              name: hf-token-secret
              key: token
        - name: MAX_TOKENS
          value: "8192"
        - name: VLLM_ATTENTION_BACKEND
          value: FLASH_ATTN
        volumeMounts:
        - name: token-cache
          mountPath: /cache
      volumes:
      - name: certs
        secret:
          secretName: certs
---
apiVersion: v1
kind: ConfigMap
data:
  MODEL: Qwen/Qwen3-8B
  MODE: disabled
  script: |
    vllm serve m
---
services:
  web:
    secrets:
      - db_password
"""


def kept(binary):
    bad = 0
    for text in ORDINARY.strip().splitlines() + [MANIFEST]:
        shown = redacted(binary, text + "\n")
        if shown != text + "\n":
            bad += 1
            print("changed: %r" % [b for a, b in zip((text + "\n").splitlines(), shown.splitlines()) if a != b])
    print("ordinary text: %d changed" % bad)
    return bad == 0


WORST = ["sk-", "eyJa-", "token=", "token=\"a ", "token='", "://a@", "://a:$b@", "://a:b@c@d:e", "password is ", "--api-key ", "{", "[", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "%3D", "%73k%2D", "hf_", "1234567890:AA", "\\", "\\\"", "a",
         "value:name:", "name:value:", "-u ", "curl -u a ", "wandb login a ", "\x1b[0m", "\u200b", "kind", "kind Secret data{", "data{a:", "password:\n", "password: |\n ", "- --api-key\n", "- value: x\n", "name: HF_TOKEN\n", "a.b-c_", "Bearer ", "auth ", "aGZf", "token[", "password=<", "key:,",
         "\n", "- ", "    ", "token: SecretStr(", "-----BEGIN PRIVATE KEY-----\nx\n", "password,", "a=&", "password=a,b", "token=a&", "AKIA", "xoxb-1-", "github_pat_", "'", "\"", "`", "kind: Secret\ndata:\n a: b\n"]


def seconds(binary, part):
    """Processor time for a megabyte of it."""
    text = (part * (1000000 // len(part.encode()) + 1)).encode()
    before = os.times()
    subprocess.run([binary, "redact"], input=text, stdout=subprocess.DEVNULL, timeout=120, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cost(binary):
    if os.environ.get("SANITIZED", "none") != "none":
        print("a sanitized build says nothing about time")
        sys.exit(77)
    slowest = (0.0, "")
    for part in WORST:
        took = seconds(binary, part)
        if took >= LIMIT_SECONDS:  # a busy machine: the best of four counts
            took = min([took] + [seconds(binary, part) for _ in range(3)])
        slowest = max(slowest, (took, part))
    print("a megabyte of %d bad inputs: at most %.2f s, for %r" % (len(WORST), slowest[0], slowest[1]))
    return slowest[0] < LIMIT_SECONDS


def main():
    wanted = sys.argv[2:] or ["hidden", "kept", "cost"]
    return 0 if all([{"hidden": hidden, "kept": kept, "cost": cost}[name](os.path.abspath(sys.argv[1])) for name in wanted]) else 1


if __name__ == "__main__":
    sys.exit(main())
