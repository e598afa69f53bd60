#!/bin/sh
# A Debian package for arm64 out of the wheel for ARM, for the image: arm_deb.sh WHEEL OUT_DIR. Command, library, stand-ins and licences, as they
# are in the wheel. Equal wheels give equal bytes.
set -eu
wheel=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$root/meson.build")
epoch=${SOURCE_DATE_EPOCH:-315532800}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m zipfile -e "$wheel" "$work/wheel"
usr=$work/tree/usr
mkdir -p "$work/tree/DEBIAN" "$usr/bin" "$usr/lib" "$usr/share/doc/oomsight"
install -m 755 "$work/wheel/oomsight/bin/oomsight" "$usr/bin/oomsight"
install -m 644 "$work/wheel/oomsight/lib/liboomsight.so.0" "$usr/lib/"
cp -r "$work/wheel/oomsight/stand-ins" "$usr/lib/oomsight"
cp -r "$work"/wheel/*.dist-info/licenses "$work"/wheel/*.dist-info/sboms "$usr/share/doc/oomsight/"
find "$work/tree" -type d -exec chmod 755 {} +
find "$usr/lib" "$usr/share" -type f -exec chmod 644 {} +
cat >"$work/tree/DEBIAN/control" <<CONTROL
Package: oomsight
Version: $version
Architecture: arm64
Maintainer: the oomsight authors <oomsight@localhost>
Installed-Size: $(du -sk "$usr" | cut -f1)
Depends: libc6 (>= 2.28)
Recommends: libcurl4
Section: utils
Priority: optional
Description: foresees, explains and reproduces GPU out-of-memory in LLM serving
 Put "oomsight plan" before a vllm serve command and learn, without a GPU,
 whether it starts, which phase dies first, why, and which flag helps.
CONTROL
echo 'activate-noawait ldconfig' >"$work/tree/DEBIAN/triggers"
find "$work/tree" -exec touch -h -d "@$epoch" {} +
SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz -b "$work/tree" "$out/oomsight_${version}_arm64.deb" >/dev/null
ls -l "$out/oomsight_${version}_arm64.deb" | awk '{print $5, $9}'
