#!/bin/sh
# The packages, tried by installing them: try_packages.sh DIST_DIR [ROOT_DIR]. In a Debian root made by debootstrap (kept when
# ROOT_DIR is given) the .deb is installed, checked, run and removed again, and the tarball is run from a place nobody thought of;
# the image of packaging/Containerfile is built over that root by buildah, and run. Needs root and debootstrap (77 without);
# lintian and buildah are used where they are.
set -u
dist=$(realpath "$1"); top=$(cd "$(dirname "$0")/../.." && pwd); here=$top/tests
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "needs root and debootstrap"; exit 77; }
work=$(mktemp -d); root=${2:-$work/root}; mounted=
finish() { [ -z "$mounted" ] || umount "$root/proc"; [ ! -d "$work/store" ] || image_tool rm -a >/dev/null 2>&1; rm -rf "$work"; }
trap finish EXIT
if [ ! -x "$root/bin/sh" ]; then
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(http[^ ]*\).*/\1/p' /etc/apt/sources.list.d/* /etc/apt/sources.list 2>/dev/null | head -n 1)
    debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$work/log" 2>&1 ||
        { tail -n 5 "$work/log"; echo "debootstrap could not make a root"; exit 77; }
fi
failed=0; shown=0
claim() { # SENTENCE COMMAND...
    sentence=$1; shift
    if "$@" >"$work/out" 2>&1; then echo "ok   $sentence"; shown=$((shown + 1))
    else echo "FAIL $sentence"; head -n 10 "$work/out"; failed=$((failed + 1)); fi
}
exits() { # CODE COMMAND...: that exit code, and an answer
    want=$1; shift
    "$@" >"$work/answer" 2>"$work/err"; code=$?
    [ "$code" = "$want" ] && [ -s "$work/answer" ] || { echo "exit $code: $*"; head -n 5 "$work/err"; return 1; }
}
# every WHERE COMMAND...: each command of the program that COMMAND starts.
every() {
    where=$1; shift
    models=/opt/fixtures/models
    claim "$where: plan" exits 0 "$@" plan --gpu 4090 -- vllm serve $models/small-llama
    claim "$where: plan that fails" exits 1 "$@" plan --gpu 4090 -- vllm serve $models/small-llama --kv-cache-memory-bytes 64424509440
    claim "$where: plan as a page" exits 0 "$@" plan --format html --gpu 4090 -- vllm serve $models/small-llama
    claim "$where: explain" exits 1 "$@" explain /opt/fixtures/kb/vllm/context-too-long/positive.log
    claim "$where: replay" exits 1 "$@" replay /opt/fixtures/traces/stranded.trace
    claim "$where: check" exits 1 "$@" check --offline --gpu 4090 --models $models /opt/fixtures/deploy/compose.yaml
    claim "$where: dryrun over CUDA 12" exits 0 "$@" dryrun --gpu 4090 --cuda 12 --json -- sh -c 'exit 0'
    claim "$where: dryrun over CUDA 13" exits 0 "$@" dryrun --gpu 4090 --cuda 13 --json -- sh -c 'exit 0'
    for word in gpus engines kb help version 'completion bash' 'completion zsh' 'completion fish'; do
        claim "$where: $word" exits 0 "$@" $word
    done
}
mkdir -p "$root/proc" "$root/opt"
mount -t proc proc "$root/proc" 2>/dev/null && mounted=1 || { echo "needs the right to mount"; exit 77; }
rm -rf "$root/opt/fixtures"; mkdir "$root/opt/fixtures"
for part in models traces kb deploy; do cp -r "$here/fixtures/$part" "$root/opt/fixtures/"; done
bare() { chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent "$@"; }

echo "--- the Debian package"
cp "$dist"/oomsight_*_amd64.deb "$root/opt/oomsight.deb"
if command -v lintian >/dev/null; then claim "lintian has nothing to say" lintian --allow-root --fail-on error,warning "$root/opt/oomsight.deb"
else echo "skip lintian: not installed"; fi
claim "dpkg installs it, and nothing else is needed" bare dpkg -i /opt/oomsight.deb
every "deb" bare oomsight
claim "its files are as packed" bare dpkg --verify oomsight
claim "the pages of the manual are there" test -f "$root/usr/share/man/man1/oomsight.1.gz" -a -f "$root/usr/share/man/man1/oomsight-plan.1.gz"
claim "the loader finds the library" bare sh -c 'ldconfig -p | grep -q liboomsight.so.0'
claim "it can be removed" bare dpkg --purge oomsight
claim "and leaves nothing" test ! -e "$root/usr/lib/oomsight" -a ! -e "$root/usr/bin/oomsight" -a ! -e "$root/usr/share/doc/oomsight"

echo "--- the tarball"
place="$root/srv/any place"; rm -rf "$place"; mkdir -p "$place"
claim "it unpacks" tar -C "$place" -xJf "$(ls "$dist"/oomsight-*-linux-x86_64.tar.xz)"
inside="/srv/any place/$(ls "$place")"
every "tarball" bare "$inside/bin/oomsight"
ln -sf "$inside/bin/oomsight" "$root/usr/local/bin/oomsight"
# by this machine's compiler, in the place where it was unpacked
by_its_pc() {
    lib="$root$inside/lib"
    export PKG_CONFIG_PATH="$lib/pkgconfig"
    eval "gcc -o '$work/plan' '$top/examples/plan.c' $(pkg-config --cflags --libs oomsight)" &&
        LD_LIBRARY_PATH="$lib" "$work/plan" "$here/fixtures/models/small-llama" 4090 | grep 'tokens of KV cache'
}
claim "a program is built by its pkg-config file, in a path with a space" by_its_pc
again() { # every file that package.sh writes
    (umask 027 && "$top/tools/package.sh" "$top/build-portable" "$work/again") &&
        for file in "$work"/again/*; do cmp "$file" "$dist/$(basename "$file")" || return 1; done
}
if [ -f "$top/build-portable/build.ninja" ]; then claim "packed with umask 027 it is the same" again
else echo "skip umask 027: no build-portable"; fi
claim "a link to it finds the stand-ins" exits 0 chroot "$root" /usr/local/bin/oomsight dryrun --gpu 4090 --cuda 12 --json -- sh -c 'exit 0'
rm -rf "$root/usr/local/bin/oomsight" "$place"

echo "--- the image"
# The base image is the debootstrap root: a registry is not asked. chroot isolation works inside another container, too.
image_tool() { tool=$1; shift; STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot buildah --root "$work/store" --runroot "$work/run" "$tool" "$@"; }
build_image() {
    [ -z "$mounted" ] || umount "$root/proc"; mounted=
    base=$(image_tool from scratch) && image_tool add -q "$base" "$root" / && image_tool commit -q "$base" docker.io/library/debian:12-slim &&
        (cd "$top" && mkdir -p "$work/context/dist" && cp "$dist"/oomsight_*_amd64.deb "$work/context/dist/" &&
            image_tool bud --pull-never -f packaging/Containerfile -t oomsight "$work/context")
}
if ! command -v buildah >/dev/null || ! image_tool from --name trial scratch >/dev/null 2>&1 || ! image_tool rm trial >/dev/null; then
    echo "skip the image: no buildah, or it is not allowed to work here"
else
    claim "the Containerfile builds" build_image
    c=$(image_tool from --pull-never oomsight)
    every "image" image_tool run "$c" -- oomsight
    claim "it runs as nobody" test "$(image_tool run "$c" -- id -un)" = nobody
    hub() { image_tool run --env HF_ENDPOINT=http://127.0.0.1:9 "$c" -- oomsight plan --gpu 4090 -- vllm serve no/such-model >"$work/answer" 2>&1; [ $? = 3 ] && ! grep -qi libcurl "$work/answer"; }
    claim "the hub is asked over libcurl" hub
    image_tool inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' oomsight >"$work/entry" 2>&1
    claim "its entry point is the command" grep -qF '[oomsight]' "$work/entry"
    echo "     size: $(image_tool images --format '{{.Name}} {{.Size}}' | tr '\n' ';')"
fi
echo "packages: $shown claims hold, $failed do not"
[ "$failed" -eq 0 ]
