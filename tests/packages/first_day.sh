#!/bin/bash
# A first day with the README alone: first_day.sh [ROOT_DIR [PAGE...]]. On an empty Debian with a user who may use sudo, in a clone, every command of
# the README, or of the pages, is typed as it stands there, in order, in one shell; a question is answered with Enter. Nothing else is installed or set.
# Left out is what a page itself marks as not run here, but for what needs root. The root is made by debootstrap and kept when ROOT_DIR is given; one
# that is there already is used as it is, also that of another system. Prints what each command took, and what there is to type until the first answer:
# that must be less than three minutes. Needs root, debootstrap, a mirror and PyPI (77 without).
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "needs root and debootstrap"; exit 77; }
work=$(mktemp -d); root=${1:-$work/root}; mounted=
[ $# -gt 1 ] && shift || set -- README.md
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
(cd "$top" && PYTHONPATH=tools python3 - "$work" "$@") <<'PYTHON' || exit 1
import re, shlex, sys, page_blocks
commands, programs = [], {}
for page in sys.argv[2:]:
    for block in page_blocks.parse(open(page).read()):
        if block.reason not in (None, "root"):
            continue
        if block.language == "python":
            programs[page] = programs.get(page, "") + "\n".join(block.lines) + "\n"
            commands.append("python3 -c " + shlex.quote(programs[page]))
        elif block.language in ("sh", "console"):
            commands += [command for _, command, _ in block.commands() if not re.match(r"make (check|asan|golden)\b|\.ci/", command)]  # hours, and their own steps
for number, command in enumerate(commands):
    open("%s/%03d.command" % (sys.argv[1], number), "w").write(command + "\n")
assert any("oomsight " in command for command in commands), commands
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
failed, letters, waited, answered = 0, 0, 0, False
A_MINUTE = 200  # letters: 40 words, as people type who copy from a page
for path in sorted(glob.glob(sys.argv[1] + "/*.command")):
    command = open(path).read().strip()
    code, seconds = map(int, open(path + ".code").read().split()) if os.path.exists(path + ".code") else (None, 0)
    good, letters, waited = page_blocks.ended_well(command, code), letters + len(command), waited + seconds
    print("%s %d s, exit code %s: %s" % ("ok  " if good else "FAIL", seconds, code, command))
    if not good:
        failed = 1
        print("".join(open(path + ".printed", errors="replace").readlines()[-12:]) if os.path.exists(path + ".printed") else "was not reached")
    if not answered and command.startswith("oomsight "):
        answered = True
        print("     the first answer: %.1f minutes of typing (%d letters), %d s of waiting" % (letters / A_MINUTE, letters, waited))
        failed |= letters > 3 * A_MINUTE
print("     all: %.1f minutes of typing, %d s of waiting" % (letters / A_MINUTE, waited))
sys.exit(failed)
PYTHON
