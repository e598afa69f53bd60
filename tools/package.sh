#!/bin/sh
# A tarball (bin lib share) and a Debian package out of a portable build: package.sh BUILD_DIR OUT_DIR. Equal builds give equal
# bytes: fixed order, owner and times.
set -eu
build=$1; out=$2; root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$root/meson.build")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
epoch=${SOURCE_DATE_EPOCH:-315532800}
mkdir -p "$out" "$work/tree"
DESTDIR="$work/tree" meson install -C "$build" --no-rebuild --strip >/dev/null
tree="$work/tree/usr"
oomsight="$tree/bin/oomsight"
for shell in bash:bash-completion/completions/oomsight zsh:zsh/vendor-completions/_oomsight fish:fish/vendor_completions.d/oomsight.fish; do
    mkdir -p "$(dirname "$tree/share/${shell#*:}")"
    "$oomsight" completion "${shell%%:*}" >"$tree/share/${shell#*:}"
done
mkdir -p "$tree/share/doc/oomsight"
cp "$root/LICENSE" "$root/README.md" "$root/CHANGELOG.md" "$tree/share/doc/oomsight/"
mkdir -p "$tree/share/doc/oomsight/licenses" # of what is linked in; the list is make_wheel.py's
for package in $(python3 -c "import sys; sys.path.insert(0, '$root/tools'); import make_wheel; print(*make_wheel.LINKED)"); do
    cp "/usr/share/doc/$package/copyright" "$tree/share/doc/oomsight/licenses/$package.txt" 2>/dev/null || true
done
find "$work/tree" -exec touch -h -d "@$epoch" {} +
name=oomsight-$version-linux-x86_64
tar -C "$work/tree" --transform "s,^usr,$name," --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -cf - usr | xz -9e -T1 >"$out/$name.tar.xz"

mkdir -p "$work/tree/DEBIAN"
cat >"$work/tree/DEBIAN/control" <<CONTROL
Package: oomsight
Version: $version
Architecture: amd64
Maintainer: the oomsight authors <oomsight@localhost>
Installed-Size: $(du -sk "$tree" | cut -f1)
Depends: libc6 (>= 2.17)
Recommends: libcurl4
Section: utils
Priority: optional
Description: foresees, explains and reproduces GPU out-of-memory in LLM serving
 Put "oomsight plan" before a vllm serve command and learn, without a GPU,
 whether it starts, which phase dies first, why, and which flag helps.
CONTROL
touch -d "@$epoch" "$work/tree/DEBIAN/control" "$work/tree/DEBIAN"
command -v dpkg-deb >/dev/null && SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz -b "$work/tree" "$out/oomsight_${version}_amd64.deb" >/dev/null
ls -l "$out"/oomsight[-_]"$version"[-_]*linux*.tar.xz "$out"/*.deb 2>/dev/null | awk '{print $5, $9}'
