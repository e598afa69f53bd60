#!/bin/bash
# A first day with the README alone: first_day.sh [ROOT_DIR]. In a Debian root that has nothing (debootstrap; kept when ROOT_DIR is given), what the
# README says under "Install" is typed as it stands there: packages, clone, pip. Then a plan, an explanation and a check. All of it within ten
# minutes, without the root itself. Needs root, debootstrap, Debian's mirror and PyPI (77 without).
set -u
top=$(cd "$(dirname "$0")/../.." && pwd); limit=600
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "needs root and debootstrap"; exit 77; }
work=$(mktemp -d); root=${1:-$work/root}; mounted=
finish() { [ -z "$mounted" ] || umount "$root/proc"; rm -rf "$work"; }
trap finish EXIT
if [ ! -x "$root/bin/sh" ]; then
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(http[^ ]*\).*/\1/p' /etc/apt/sources.list.d/* /etc/apt/sources.list 2>/dev/null | head -n 1)
    debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$work/log" 2>&1 ||
        { tail -n 5 "$work/log"; echo "debootstrap could not make a root"; exit 77; }
fi
mount -t proc proc "$root/proc" 2>/dev/null && mounted=1 || { echo "needs the right to mount"; exit 77; }
# How this machine reaches the network is no part of the README: names, certificates, pip's and apt's settings.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null
mkdir -p "$root/etc/apt/apt.conf.d" "$root/root"
cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root/root/authorities.crt" 2>/dev/null # where no package writes over it
[ ! -f /etc/pip.conf ] || cp -L /etc/pip.conf "$root/etc/"
find /etc/apt/apt.conf.d -name '*prox*' -exec cp {} "$root/etc/apt/apt.conf.d/" \; 2>/dev/null
mkdir -p "$root/root/src"; rm -rf "$root/root/src/oomsight" "$root/root/day"
git clone -q "$top" "$root/root/src/oomsight" && (cd "$top" && git ls-files -z | xargs -0 cp --parents -t "$root/root/src/oomsight") || exit 1

failed=0; total=0
# typed SECONDS-IT-MAY-TAKE EXIT WORDS-TO-FIND COMMAND: as root in the new root, in the clone, by sh.
typed() {
    local begun=$SECONDS code
    timeout "$1" chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 \
        PATH=/root/day/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        $([ ! -f "$root/root/authorities.crt" ] || echo PIP_CERT=/root/authorities.crt SSL_CERT_FILE=/root/authorities.crt) \
        $(env | grep -E '^(PIP_(INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)|[Hh][Tt][Tt][Pp][Ss]?_[Pp][Rr][Oo][Xx][Yy])=') \
        sh -c "cd /root/src/oomsight && $4" >"$work/out" 2>&1 </dev/null
    code=$?; total=$((total + SECONDS - begun))
    if [ "$code" -eq "$2" ] && { [ -z "$3" ] || grep -q "$3" "$work/out"; }; then echo "ok   $((SECONDS - begun)) s  $4"
    else echo "FAIL exit $code: $4"; tail -n 12 "$work/out"; failed=1; fi
    return $((code != $2))
}
# The block under "## Install": one command a line, `\` continues one. Root needs no sudo; the clone is there.
commands=$(sed -n '/^## Install/,/^## /p' "$top/README.md" | sed -n '/^```/,/^```/p' | sed -n '2,/^```/p' | sed '/^```/d' |
    sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' | sed -e 's/sudo //g; s/^\$ //; s/apt-get install/apt-get install -y --no-install-recommends/; s/apt install/apt-get install -y --no-install-recommends/')
echo "$commands" | grep -q 'pip install' || { echo "FAIL the README's Install says nothing of pip"; exit 1; }
typed 200 0 '' 'apt-get update -qq' || { echo "Debian's mirror cannot be asked"; exit 77; }
while IFS= read -r line; do
    case $line in
    '' | '#'* | 'git clone'* | 'cd '*) continue ;;
    *pip\ install* | *pipx\ install* | *uv\ tool*) # what else the command needs is Debian's way to have pip: an environment
        typed 100 0 '' 'apt-get install -y --no-install-recommends python3-venv >/dev/null && python3 -m venv /root/day' && typed $limit 0 '' "$line" || break ;;
    *) typed $limit 0 '' "$line" || break ;;
    esac
done <<<"$commands"
typed 60 0 'Qwen3-8B' 'oomsight plan --offline --gpu h100 -- vllm serve Qwen/Qwen3-8B'
typed 60 1 'max-model-len' 'oomsight plan --offline --gpu 4090 -- vllm serve Qwen/Qwen3-8B'
typed 60 1 'max-model-len' 'oomsight explain tests/fixtures/kb/vllm/context-too-long/positive.log'
typed 60 1 'compose.yaml' 'oomsight check --offline --gpu 4090 --models tests/fixtures/models tests/fixtures/deploy/compose.yaml'
typed 60 0 'True' 'python3 -c "import oomsight; print(bool(oomsight.plan(\"vllm serve Qwen/Qwen3-8B\", gpu=\"h100\", hub=False)))"'
echo "first day: $total s of commands"
[ "$total" -le $limit ] || { echo "FAIL more than $limit s"; failed=1; }
exit $failed
