#!/bin/sh
# A tarball (bin lib share) and a Debian package out of a portable build: package.sh BUILD_DIR OUT_DIR. Equal builds give equal
# bytes: fixed order, owner and times.
set -eu
umask 022 # who unpacks it must be able to read it
build=$1; out=$2; root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$root/meson.build")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
epoch=${SOURCE_DATE_EPOCH:-315532800}
mkdir -p "$out" "$work/tree"
DESTDIR="$work/tree" meson install -C "$build" --no-rebuild --strip >/dev/null
tree="$work/tree/usr"
sed -i 's,^prefix=.*,prefix=${pcfiledir}/../..,' "$tree/lib/pkgconfig/oomsight.pc" # unpacked anywhere
sed -i '/^\(Requires\|Libs\)\.private:/d' "$tree/lib/pkgconfig/oomsight.pc" # linked in: who links with it needs none of them
mkdir -p "$tree/share/doc/oomsight"
cp "$root/LICENSE" "$root/README.md" "$root/CHANGELOG.md" "$tree/share/doc/oomsight/"
"$root/tools/sbom.py" "$build" "$tree/share/doc/oomsight" >/dev/null # licences and the list of what is linked in; ends here if one is missing
find "$work/tree" -exec touch -h -d "@$epoch" {} +
name=oomsight-$version-linux-x86_64
tar -C "$work/tree" --transform "s,^usr,$name," --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -cf - usr | xz -9e -T1 >"$out/$name.tar.xz"

# What Debian asks beyond that: copyright and changelog in its forms, compressed pages, sums, a note of why libraries are linked in.
doc="$tree/share/doc/oomsight"
maintainer='the oomsight authors <oomsight@localhost>'
mkdir -p "$work/tree/DEBIAN" "$tree/share/lintian/overrides"
rm "$doc/LICENSE"
cat >"$doc/copyright" <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: oomsight

Files: *
Copyright: 2026 the oomsight authors
License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
Comment: Libraries are linked in, so that one build runs everywhere; their
 licences are in /usr/share/doc/oomsight/licenses.
COPYRIGHT
printf 'oomsight (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$version" "$maintainer" "$(LC_ALL=C date -R -u -d "@$epoch")" |
    gzip -9n >"$doc/changelog.gz"
gzip -9n "$doc/CHANGELOG.md" "$tree"/share/man/man1/*.1
find "$tree/lib" -name '*.so*' -type f -exec chmod 0644 {} +
cat >"$tree/share/lintian/overrides/oomsight" <<'OVERRIDES'
# One build for every distribution: libraries are linked in on purpose, the library lies beside the command that it belongs to.
oomsight: embedded-library *
oomsight: package-name-doesnt-match-sonames *
oomsight: link-to-shared-library-in-wrong-package *
oomsight: pkg-config-unavailable-for-cross-compilation *
oomsight: bogus-mail-host *
oomsight: bogus-mail-host-in-debian-changelog *
OVERRIDES
cat >"$work/tree/DEBIAN/control" <<CONTROL
Package: oomsight
Version: $version
Architecture: amd64
Maintainer: $maintainer
Installed-Size: $(du -sk "$tree" | cut -f1)
Depends: libc6 (>= 2.17)
Recommends: libcurl4
Section: utils
Priority: optional
Description: foresees, explains and reproduces GPU out-of-memory in LLM serving
 Put "oomsight plan" before a vllm serve command and learn, without a GPU,
 whether it starts, which phase dies first, why, and which flag helps.
CONTROL
echo 'liboomsight 0 oomsight' >"$work/tree/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"$work/tree/DEBIAN/triggers"
(cd "$work/tree" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum) >"$work/tree/DEBIAN/md5sums"
find "$work/tree" -exec touch -h -d "@$epoch" {} +
command -v dpkg-deb >/dev/null && SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz -b "$work/tree" "$out/oomsight_${version}_amd64.deb" >/dev/null
ls -l "$out"/oomsight[-_]"$version"[-_]*linux*.tar.xz "$out"/*.deb 2>/dev/null | awk '{print $5, $9}'
