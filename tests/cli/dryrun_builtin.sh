# A built-in model needs no network: its config files stand in a folder that takes the place of its name. Of another name it is said who is asked.
work=$(mktemp -d); mkdir "$work/hub"
cat >"$work/vllm" <<'END'
#!/bin/sh
model=$2; case "$1" in --model=*) model=${1#*=} ;; esac
ls "$model" 2>/dev/null && grep -o '"architectures": *\["[A-Za-z0-9]*' "$model/config.json"
for word; do case "$word" in --load-format | --tokenizer) echo "$word" ;; esac; done
exit 3
END
chmod +x "$work/vllm"
export HF_HUB_CACHE="$work/hub"
ask() { "$OOMSIGHT" dryrun --gpu L4 --cuda 13 --output /dev/null -- "$work/vllm" "$@" 2>&1 | grep -v "added:"; }
ask serve Qwen/Qwen3-0.6B
echo "-- quantized by ModelOpt: both files"; ask serve nvidia/Qwen3-14B-FP8
echo "-- images"; ask serve Qwen/Qwen3-VL-4B-Instruct
echo "-- not built in"; ask serve org/nobody
echo "-- in the cache"
mkdir -p "$work/hub/models--Qwen--Qwen3-0.6B/snapshots/c" "$work/hub/models--Qwen--Qwen3-0.6B/refs"
printf c >"$work/hub/models--Qwen--Qwen3-0.6B/refs/main"; echo '{}' >"$work/hub/models--Qwen--Qwen3-0.6B/snapshots/c/config.json"
ask serve Qwen/Qwen3-0.6B
rm -rf "$work"
