#!/bin/sh
# The wheel for ARM, run here under qemu: try_arm.sh WHEEL. Golden reports are those of this machine, and every command answers. Needs
# Debian's qemu-user-static and libc6-arm64-cross; exit 77 without them.
set -u
wheel=$(realpath "$1"); root=$(cd "$(dirname "$0")/../.." && pwd); libc=/usr/aarch64-linux-gnu
command -v qemu-aarch64-static >/dev/null && [ -d "$libc/lib" ] || { echo "no qemu-user-static or no libc6-arm64-cross"; exit 77; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m zipfile -e "$wheel" "$work/wheel" || exit 1
mkdir -p "$work/build/cli"
printf '#!/bin/sh\nexec qemu-aarch64-static -L %s %s "$@"\n' "$libc" "$work/wheel/oomsight/bin/oomsight" >"$work/build/cli/oomsight"
chmod +x "$work/wheel/oomsight/bin/oomsight" "$work/build/cli/oomsight"
failed=0
"$root/tools/golden.sh" "$work/build" || failed=1
# expect EXIT WORDS...
expect() {
    wanted=$1; shift
    timeout 120 "$work/build/cli/oomsight" "$@" >"$work/out" 2>&1 </dev/null
    got=$?
    [ "$got" -eq "$wanted" ] || { echo "FAIL oomsight $1: exit $got, not $wanted"; head -n 5 "$work/out"; failed=1; }
}
cd "$root/tests/fixtures" || exit 1
expect 0 --version
expect 0 plan --gpu 4090 -- vllm serve models/small-llama
expect 1 explain kb/vllm/context-too-long/positive.log
expect 1 replay traces/stranded.trace
expect 1 matrix --offline --models models matrix/fleet.yaml
expect 0 gpus
expect 0 engines
expect 0 kb list
expect 0 redact deploy/serve.sh
expect 3 check --offline --gpu h100 --models models deploy/serve.sh
expect 0 completion bash
expect 0 doctor
readelf -W --dyn-syms "$work"/wheel/oomsight/bin/oomsight "$work"/wheel/oomsight/lib/*.so* "$work"/wheel/oomsight/stand-ins/*.so "$work"/wheel/oomsight/stand-ins/cuda*/* |
    grep -o '@GLIBC_[0-9.]*' | sort -Vu | tail -n 1
exit $failed
