#!/bin/bash
# A first day with the README alone: first_day.sh [ROOT_DIR]. On an empty Debian with a user who may use sudo, in a clone, every line of every ```sh
# block of the README is typed as it stands there, in order, in one shell; a question is answered with Enter. Nothing else is installed or set. The
# root is made by debootstrap and kept when ROOT_DIR is given; one that is there already is used as it is, also that of another system. Needs
# root, debootstrap, a mirror and PyPI (77 without).
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "needs root and debootstrap"; exit 77; }
work=$(mktemp -d); root=${1:-$work/root}; mounted=
finish() { [ -z "$mounted" ] || umount "$root/proc"; rm -rf "$work"; }
trap finish EXIT
if [ ! -x "$root/bin/sh" ]; then
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(http[^ ]*\).*/\1/p' /etc/apt/sources.list.d/* /etc/apt/sources.list 2>/dev/null | head -n 1)
    debootstrap --variant=minbase --include=sudo bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$work/log" 2>&1 ||
        { tail -n 5 "$work/log"; echo "debootstrap could not make a root"; exit 77; }
fi
mount -t proc proc "$root/proc" 2>/dev/null && mounted=1 || { echo "needs the right to mount"; exit 77; }
# How this machine reaches the network is no part of the README: names, certificates, pip's and apt's settings.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null
mkdir -p "$root/etc/apt/apt.conf.d"
cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root/etc/authorities.crt" 2>/dev/null # where no package writes over it
[ ! -f /etc/pip.conf ] || sed 's,^cert *=.*,cert = /etc/authorities.crt,' /etc/pip.conf >"$root/etc/pip.conf"
find /etc/apt/apt.conf.d -name '*prox*' -exec cp {} "$root/etc/apt/apt.conf.d/" \; 2>/dev/null
chroot "$root" apt-get update >"$work/log" 2>&1 || { tail -n 5 "$work/log"; echo "the mirror cannot be asked"; exit 77; }
rm -rf "$root"/var/lib/apt/lists/*

# The reader and the clone.
chroot "$root" sh -c 'id reader || useradd --create-home --shell /bin/bash reader' >/dev/null 2>&1
echo 'reader ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/reader"
home=$root/home/reader; rm -rf "$home/oomsight"
git clone -q "$top" "$home/oomsight" && (cd "$top" && git ls-files -z | xargs -0 cp --parents -t "$home/oomsight") || exit 1
# What the README says, and a shell that it is typed into.
PYTHONPATH=$top/tools python3 - "$top/README.md" "$work" <<'PYTHON' || exit 1
import sys, page_blocks
commands = [command for block in page_blocks.parse(open(sys.argv[1]).read()) if block.language == "sh" for _, command, _ in block.commands()]
for number, command in enumerate(commands):
    open("%s/%02d.command" % (sys.argv[2], number), "w").write(command + "\n")
assert any("pip install" in command for command in commands) and any("oomsight plan" in command for command in commands), commands
PYTHON
rm -rf "$home/typed"; mkdir "$home/typed"; cp "$work"/*.command "$home/typed/"; yes '' | head -n 1000 >"$home/typed/enter"
cat >"$home/typed/session" <<'SESSION'
cd ~/oomsight
for typed in ~/typed/*.command; do
    begun=$SECONDS
    eval "$(cat "$typed")" >"$typed.printed" 2>&1 <~/typed/enter
    echo "$? $((SECONDS - begun))" >"$typed.code"
done
SESSION
chroot "$root" chown -R reader: /home/reader
timeout 6000 chroot --userspec=reader:reader "$root" env -i HOME=/home/reader USER=reader LC_ALL=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin \
    $([ ! -f "$root/etc/authorities.crt" ] || echo PIP_CERT=/etc/authorities.crt SSL_CERT_FILE=/etc/authorities.crt) \
    $(env | grep -E '^(PIP_(INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)|[Hh][Tt][Tt][Pp][Ss]?_[Pp][Rr][Oo][Xx][Yy])=') \
    bash --noprofile --norc /home/reader/typed/session
PYTHONPATH=$top/tools python3 - "$home/typed" <<'PYTHON'
import glob, os, sys, page_blocks
failed = 0
for path in sorted(glob.glob(sys.argv[1] + "/*.command")):
    command = open(path).read().strip()
    code, seconds = map(int, open(path + ".code").read().split()) if os.path.exists(path + ".code") else (None, 0)
    good = page_blocks.ended_well(command, code)
    print("%s %d s, exit code %s: %s" % ("ok  " if good else "FAIL", seconds, code, command))
    if not good:
        failed = 1
        print("".join(open(path + ".printed", errors="replace").readlines()[-12:]) if os.path.exists(path + ".printed") else "was not reached")
sys.exit(failed)
PYTHON
