#!/bin/sh
# Wheels for systems other than this one, by zig: wheels.sh OUT_DIR [NAME...]. Every NAME has a file in packaging/cross; without names all of
# them. Exit 77 when the compiler or the sources of the libraries cannot be had.
set -u
root=$(cd "$(dirname "$0")/.." && pwd); out=$1; shift
cd "$root" || exit 1
[ $# -gt 0 ] || set -- aarch64-linux-gnu x86_64-linux-musl aarch64-linux-musl aarch64-macos x86_64-macos x86_64-windows
tools/zig.sh meson subprojects download jansson libyaml pcre2 uthash cmocka >/dev/null || { echo "no ziglang, or no sources of the libraries"; exit 77; }

# The name that pip knows a system by: the oldest that runs it.
tag_of() {
    case $1 in
    aarch64-linux-gnu) echo manylinux_2_28_aarch64 ;;
    *-linux-musl) echo "musllinux_1_2_${1%%-*}" ;;
    aarch64-macos) echo macosx_13_0_arm64 ;;
    x86_64-macos) echo macosx_13_0_x86_64 ;;
    x86_64-windows) echo win_amd64 ;;
    *) echo "wheels.sh: no system $1" >&2; exit 2 ;;
    esac
}

# What of a build goes into the wheel. Stand-ins are for engines, and those are built for glibc only.
parts_of() {
    case $1 in
    *-linux-gnu) ninja -C "$2" -t targets all | sed -n 's/^\(cli\/oomsight\|cli\/launcher\/oomsight\|src\/liboomsight\.so\.0\|shim\/.*\.so[.0-9]*\|shim\/nvidia-smi\): c_LINKER.*/\1/p' ;;
    *-linux-musl) echo cli/oomsight cli/launcher/oomsight src/liboomsight.so.0 ;;
    *-macos) echo cli/oomsight src/liboomsight.0.dylib ;;
    *) echo cli/oomsight.exe src/liboomsight-0.dll ;;
    esac
}

for name; do
    tag=$(tag_of "$name") || exit 2
    dir=build-$name; log=build-$name.log
    { [ -f "$dir/build.ninja" ] || tools/zig.sh meson setup "$dir" --cross-file "packaging/cross/$name.ini"; } >"$log" 2>&1 &&
        tools/zig.sh ninja -C "$dir" -j2 $(parts_of "$name" "$dir") >>"$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
    tools/make_wheel.py "$dir" "$out" "$tag" || exit 1
done
