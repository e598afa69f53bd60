#!/bin/sh
# A virtual environment with one engine for the oracle tests, kept outside the checkout and made once:
#     tools/engine_venv.sh VERSION [vllm|sglang]
# With uv on PATH files are linked from its cache: releases that share their PyTorch share its gigabytes, and one is made in a minute.
# Bytecode is compiled once, here: a start of an engine takes half the processor time by it.
# Uses what is there in OOMSIGHT_VENVS (default ~/.cache/oomsight/venvs). Exit 77 when it cannot be made.
set -u
version=$1; engine=${2:-vllm}; home=${OOMSIGHT_VENVS:-$HOME/.cache/oomsight/venvs}; folder=$home/$engine-$version
[ -f "$folder/.ready" ] && exit 0
free_kib=$(df -Pk "$(dirname "$home")" 2>/dev/null | awk 'NR == 2 {print $4}')
if [ "${free_kib:-0}" -lt 15000000 ] && [ -d "$(dirname "$home")" ]; then echo "less than 15 GB free for $folder"; exit 77; fi
install() {
    # uv would take a cuda-python from before there was cuda-bindings, whose files lie over those: then FlashInfer does not import.
    echo "cuda-python>=12.8" >"$folder/constraints.txt"
    # SGLang up to 0.5.22 asks for cuda-tile 1.6.0rc5, of which PyPI has the name only.
    # vLLM 0.33.0 asks for a certifi that a mirror may not have yet; which one does not matter here.
    printf '%s\n' "cuda-tile>=1.7" certifi >"$folder/overrides.txt"
    if command -v uv >/dev/null; then set -- uv pip install -q --compile-bytecode --python "$folder/bin/python" -c "$folder/constraints.txt" --overrides "$folder/overrides.txt" "$1"; else set -- "$folder/bin/pip" install -q --no-cache-dir "$1"; fi
    timeout "${OOMSIGHT_VENV_SECONDS:-900}" "$@"
}
mkdir -p "$home" && rm -rf "$folder" && python3 -m venv "$folder" && install "$engine==$version" 2>"$folder/said" && touch "$folder/.ready" && exit 0
# uv and pip wrap their reason over many lines; what stands before it is not it.
reason=$(sed -n '/╰─▶\|^ERROR\|^error/,$p' "$folder/said" 2>/dev/null | tr -s '\n ' ' ' | cut -c1-400)
echo "$engine $version could not be installed into $folder: ${reason:-$(tail -n 1 "$folder/said" 2>/dev/null)}"; rm -rf "$folder"; exit 77
