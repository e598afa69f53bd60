#!/usr/bin/env python3
"""A hub and a second host for its weights, for the time a test program runs: hub_server.py PROGRAM

Each model of the hub misbehaves in its own way; test_hub.c says what must come of it. Standard library only.
"""
import http.server
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time

CONFIG = json.dumps({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 64,
    "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
    "vocab_size": 1000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}).encode()


def weights(names, rows=64):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        header[name] = {"dtype": "BF16", "shape": [rows, 64], "data_offsets": [offset, offset + rows * 128]}
        offset += rows * 128
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(offset)


FIRST, SECOND = weights(["model.embed_tokens.weight", "model.norm.weight"]), weights(["lm_head.weight"], 32)
LARGE = weights(["model.layers.%d.a.very.long.name.of.a.tensor.weight" % i for i in range(2500)], 1)
INDEX = json.dumps({"metadata": {"total_size": 1}, "weight_map": {
    "model.embed_tokens.weight": "model-00001-of-00002.safetensors", "model.norm.weight": "model-00001-of-00002.safetensors",
    "lm_head.weight": "model-00002-of-00002.safetensors"}}).encode()
SHARDS = {"model-00001-of-00002.safetensors": FIRST, "model-00002-of-00002.safetensors": SECOND}
LIAR = struct.pack("<Q", 1 << 63) + b"{}"

# model -> its files; what is special about a model is in answer() below
MODELS = {
    "org/sharded": {"config.json": CONFIG, "model.safetensors.index.json": INDEX, **SHARDS},
    "org/single": {"config.json": CONFIG, "model.safetensors": FIRST},
    "org/images": {"config.json": CONFIG[:-1] + b', "vision_config": {"hidden_size": 64, "depth": 2}}', "preprocessor_config.json": b'{"max_pixels": 5000}',
                   "video_preprocessor_config.json": b'{"size": {"longest_edge": 70}}', "model.safetensors": FIRST},
    "single": {"config.json": CONFIG, "model.safetensors": FIRST},
    "org/large": {"config.json": CONFIG, "model.safetensors": LARGE},
    "org/bin": {"config.json": CONFIG, "pytorch_model.bin": b"x"},
    "org/gated": {"config.json": CONFIG, "model.safetensors": FIRST},
    "org/empty": {"README.md": b"x"},
    "org/cut-config": {"config.json": CONFIG},
    "org/cut-weights": {"config.json": CONFIG, "model.safetensors": FIRST},
    "org/short": {"config.json": CONFIG, "model.safetensors": FIRST[:100]},
    "org/tiny": {"config.json": CONFIG, "model.safetensors": FIRST[:5]},
    "org/liar": {"config.json": CONFIG, "model.safetensors": LIAR},
    "org/whole": {"config.json": CONFIG, "model.safetensors": FIRST},
    "org/whole-large": {"config.json": CONFIG, "model.safetensors": LARGE},
    "org/loop": {"config.json": CONFIG},
    "org/file": {"config.json": CONFIG},
    "org/slow": {"config.json": CONFIG},
    "org/endless": {"config.json": CONFIG},
    "org/drip": {"config.json": CONFIG},
    "org/busy": {"config.json": CONFIG},
    "org/html": {"config.json": b"<html>not what you think</html>"},
    "org/quant": {"config.json": CONFIG, "hf_quant_config.json": b"{", "model.safetensors": FIRST},
    "org/escape": {"config.json": CONFIG, "model.safetensors.index.json": b'{"weight_map":{"a":"../../../etc/passwd"}}'},
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    is_cdn = False
    cdn = ""

    def log_message(self, *args):
        pass

    def send(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass
        if length is not None and length != len(body):
            self.close_connection = True

    def send_file(self, body, ranged=True):
        asked = self.headers.get("Range")
        if not asked or not ranged:
            return self.send(200, body)
        first, last = asked.removeprefix("bytes=").split("-")
        part = body[int(first):int(last) + 1]
        self.send(206, part, [("Content-Range", "bytes %s-%d/%d" % (first, int(first) + len(part) - 1, len(body)))])

    def do_GET(self):
        if self.is_cdn:
            if self.headers.get("Authorization"):
                return self.send(400, b"a token came to a host that is not the hub")
            return self.send_file(SHARDS[self.path.split("/")[-1].split("?")[0]])
        self.answer()

    def answer(self):
        model, _, rest = self.path.lstrip("/").partition("/resolve/")
        revision, _, name = rest.partition("/")
        files = MODELS.get(model)
        if self.headers.get("User-Agent", "").split("/")[0] != "oomsight":
            return self.send(400)
        if files is None:
            return self.send(401 if not self.headers.get("Authorization") else 404)
        if revision not in ("main", "v2", "refs%2Fpr%2F1"):
            return self.send(404)
        if model == "org/gated" and self.headers.get("Authorization") != "Bearer good":
            return self.send(403 if self.headers.get("Authorization") else 401)
        if name not in files:
            return self.send(404, b"no such file")
        body = files[name]
        if model == "org/sharded" and name in SHARDS:
            return self.send(302, headers=[("Location", "%s/blob/%s?signed=1" % (self.cdn, name))])
        if model == "org/loop":
            return self.send(302, headers=[("Location", self.path)])
        if model == "org/file":
            return self.send(302, headers=[("Location", "file:///etc/hostname")])
        if model == "org/busy":
            return self.send(503)
        if model == "org/cut-config":
            return self.send(200, body[:50], length=len(body))
        if model == "org/cut-weights" and name == "model.safetensors":
            return self.send(206, body[:50], [("Content-Range", "bytes 0-131071/%d" % len(body))], length=131072)
        if model == "org/slow":
            time.sleep(60)
            return self.send(200, body)
        if model == "org/endless":
            return self.endless()
        if model == "org/drip":
            return self.drip()
        if model.startswith("org/whole") and name == "model.safetensors":
            return self.send_file(body, ranged=False)
        self.send_file(body)

    def drip(self):
        """Never silent, and never done."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            for _ in range(1500):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.2)
        except OSError:
            pass
        self.close_connection = True

    def endless(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            while True:
                self.wfile.write(chunk)
        except OSError:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that has read enough hangs up


def serve(handler):
    server = Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d" % server.server_address[1]


def main():
    cdn = serve(type("Cdn", (Handler,), {"is_cdn": True}))
    hub = serve(type("Hub", (Handler,), {"cdn": cdn}))
    unset = ("HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HOME", "HUGGINGFACE_HUB_CACHE", "no_proxy", "NO_PROXY")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    # a proxy that is not there: a hub on this machine must not be asked for through it
    env.update(HF_ENDPOINT=hub + "/", http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9",
               ALL_PROXY="http://127.0.0.1:9", HF_HUB_DOWNLOAD_TIMEOUT="2")
    with tempfile.TemporaryDirectory() as cache:
        env["HF_HUB_CACHE"] = cache
        return subprocess.run(sys.argv[1:], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
