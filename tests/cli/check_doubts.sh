# No file passes in silence: folders are walked, what names the engine and is not understood is a warning, broken YAML an error, and
# one file that cannot be read does not lose the others. The GPU is read from the file, and compared with what the command needs.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
models=$PWD/../fixtures/models
mkdir -p "$work/deploy/.git" "$work/deploy/more"
cd "$work" || exit 1
printf 'serve:\n\tvllm serve acme/small-llama --max-model-len 8192\n' >deploy/Makefile
printf '[program:vllm]\ncommand=vllm serve acme/small-llama --max-model-len 4096\n' >deploy/supervisord.conf
printf 'from vllm import LLM\nllm = LLM(model="acme/small-llama",\n          max_model_len=8192)\n' >deploy/app.py
printf 'args = ["vllm", "serve", "acme/small-llama"]\n' >deploy/more/job.hcl
printf 'patches:\n- value: --max-model-len=8192\n' >deploy/engine.yaml
printf 'key: [unclosed\n' >deploy/broken.yaml
printf 'nothing: here\n' >deploy/other.yaml
printf 'vllm serve acme/small-llama\n' >deploy/.git/hook.sh
printf '#!/bin/sh\n#SBATCH --gres=gpu:l4:1\nvllm serve acme/small-llama --max-model-len 8192 --tensor-parallel-size 2\n' >deploy/job.sh
check() { "$OOMSIGHT" check --offline --vllm 0.32.0 --models "$models" "$@" | cut -c1-120; }
echo "a folder"
check --gpu 4090 deploy
echo "the device from the file"
check deploy/job.sh
echo "what cannot be read does not lose the rest"
check --gpu 4090 nowhere.yaml deploy/Makefile
code() { "$OOMSIGHT" check --offline --vllm 0.32.0 --models "$models" --gpu 4090 "$@" >/dev/null; echo "exit $?"; }
code deploy/engine.yaml
code --strict deploy/engine.yaml
code deploy/broken.yaml
code nowhere.yaml deploy/Makefile
echo "of many files that only name an engine, ten stand above the count"
mkdir many && for i in 01 02 03 04 05 06 07 08 09 10 11 12; do echo "kind: vllm-notes" >many/$i.yaml; done
check --gpu 4090 many | tail -n 3
check --gpu 4090 --explain many | tail -n 3
