#!/bin/sh
# The wheel in a Debian that has next to nothing: minimal_root.sh WHEEL [ROOT_DIR]. debootstrap makes the root (kept when
# ROOT_DIR is given), the wheel is unpacked there without pip, and every command is run. Needs root and debootstrap; 77 without.
set -u
wheel=$(realpath "$1"); here=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "needs root and debootstrap"; exit 77; }
root=${2:-$(mktemp -d)}; keep=${2:-}
if [ ! -x "$root/bin/sh" ]; then
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(http[^ ]*\).*/\1/p' /etc/apt/sources.list.d/* /etc/apt/sources.list 2>/dev/null | head -n 1)
    debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
        { tail -n 5 "$root.log"; echo "debootstrap could not make a root"; exit 77; }
fi
start=$(date +%s)
mounted=
mount -t proc proc "$root/proc" 2>/dev/null && mounted=1 # every container has it; the program asks it where it is
finish() { [ -z "$mounted" ] || umount "$root/proc"; [ -n "$keep" ] || rm -rf "$root"; }
trap finish EXIT
# As pip would lay it out: scripts to bin, the package beside.
mkdir -p "$root/opt/w" "$root/opt/oomsight/bin" "$root/opt/fixtures"
python3 -c "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])" "$wheel" "$root/opt/w"
cp "$root"/opt/w/*.data/scripts/oomsight "$root/opt/oomsight/bin/" && chmod +x "$root/opt/oomsight/bin/oomsight" "$root/opt/w/oomsight/bin/oomsight"
cp -r "$root/opt/w/oomsight" "$root/opt/oomsight/"
cp -r "$here/fixtures/models" "$here/fixtures/traces" "$here/fixtures/kb" "$root/opt/fixtures/"
failed=0
try() { # CODE WORDS...
    want=$1; shift
    chroot "$root" /opt/oomsight/bin/oomsight "$@" >"$root/opt/out" 2>"$root/opt/err"; code=$?
    if [ "$code" = "$want" ] && [ -s "$root/opt/out" ]; then echo "ok   oomsight $1"
    else echo "FAIL oomsight $* (exit $code)"; head -n 5 "$root/opt/err"; failed=$((failed + 1)); fi
}
chroot "$root" /lib64/ld-linux-x86-64.so.2 --version | head -n 1
try 0 plan --gpu 4090 -- vllm serve /opt/fixtures/models/small-llama
try 0 plan --format html --gpu 4090 -- vllm serve /opt/fixtures/models/small-llama
try 1 explain /opt/fixtures/kb/vllm/context-too-long/positive.log
try 1 replay /opt/fixtures/traces/stranded.trace
try 0 dryrun --gpu 4090 --cuda 12 --json -- sh -c 'exit 0'
try 0 dryrun --gpu 4090 --cuda 13 --json -- sh -c 'exit 0'
try 0 gpus; try 0 engines; try 0 kb; try 0 help
# The hub needs libcurl, which is not here: it must say so.
chroot "$root" /opt/oomsight/bin/oomsight plan --gpu 4090 -- vllm serve no/such-model 2>"$root/opt/err"; [ $? = 3 ] && sed 's/^/     /' "$root/opt/err" || failed=$((failed + 1))
echo "minimal root: $(($(date +%s) - start)) s, $failed failed"
[ "$failed" -eq 0 ]
