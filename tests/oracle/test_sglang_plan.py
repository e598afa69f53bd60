"""SGLang's default back-end with fewer than four query heads per KV head: FlashInfer plans its batches. Exit 77 without an engine.

    tests/oracle/test_sglang_plan.py BINARY"""
import json
import os
import subprocess
import sys
import tempfile

import engines

CONFIG = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 512, "vocab_size": 2000, "hidden_act": "silu", "rms_norm_eps": 1e-6,
          "rope_theta": 1e6, "max_position_embeddings": 4096, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}


def main():
    binary = os.path.abspath(sys.argv[1])
    folders = sorted(name for name in os.listdir(engines.VENVS) if name.startswith("sglang-")) if os.path.isdir(engines.VENVS) else []
    if not folders:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    failed = 0
    for name in folders:
        with tempfile.TemporaryDirectory() as model:
            with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as f:
                json.dump(CONFIG, f)
            env = dict(os.environ, PATH=os.path.join(engines.VENVS, name, "bin") + ":" + os.environ["PATH"], HF_HUB_OFFLINE="1")
            before = set(os.listdir("/dev/shm"))
            done = subprocess.run([binary, "dryrun", "--json", "--gpu", "L4", "--load", "8:32:4", "--", "sglang", "serve", model], env=env, capture_output=True, text=True, check=False)
            left = [x for x in set(os.listdir("/dev/shm")) - before if x.startswith("sglang_loads")]
        report = json.loads(done.stdout or "{}")
        sound = {"it starts": report.get("verdict") == "fits", "it answers": bool(report.get("load")) and report["load"]["answered"] == 8, "nothing is left in /dev/shm": not left}
        for sentence, holds in sound.items():
            failed += not holds
            print("%s %s: %s" % ("ok  " if holds else "FAIL", name, sentence))
        if not all(sound.values()):
            print(done.stderr[-3000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
