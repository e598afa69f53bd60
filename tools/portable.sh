#!/bin/sh
# Build what runs on other systems: portable.sh BUILD_DIR. Third-party libraries are linked in, glibc is asked for 2.17 at
# most, and nothing of this machine's paths stays in the files, so that two builds are equal.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd); dir=$1
case $root in *[[:space:]]*) echo "portable.sh: the compiler's flags take no path with a space: $root" >&2; exit 1 ;; esac
stubs=$(mkdir -p "$dir-glibc" && cd "$dir-glibc" && pwd)
"$root/tools/glibc_stub.py" "$stubs" 2.17
if [ ! -f "$dir/build.ninja" ]; then
    CC=${CC:-gcc} CFLAGS="-ffile-prefix-map=$root=. -fno-ident -ffunction-sections -fdata-sections" \
        LDFLAGS="-L$stubs -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--build-id=none -Wl,--gc-sections" \
        "$root/tools/setup.sh" "$dir" "$root" -Dportable=true -Dcommand=linked -Dprefer_static=true -Ddebug=false -Ddefault_library=shared \
        -Db_asneeded=false --prefix /usr --libdir lib
fi
ninja -C "$dir" -j2
