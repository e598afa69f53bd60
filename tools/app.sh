#!/bin/sh
# The page that needs no install: app.sh BUILD_DIR OUT_DIR. Compiles the command for WebAssembly and puts it beside web/app. Exit 77
# when the compiler or the sources of the three libraries cannot be had.
set -u
root=$(cd "$(dirname "$0")/.." && pwd); build=$1; out=$2
cd "$root" || exit 1
if [ ! -f "$build/build.ninja" ]; then
    tools/zig.sh meson subprojects download jansson libyaml pcre2 uthash >/dev/null || { echo "no ziglang, or no sources of the libraries"; exit 77; }
    tools/zig.sh meson setup "$build" --cross-file packaging/cross/wasm32-wasi.ini || exit 1
fi
tools/zig.sh ninja -C "$build" -j2 cli/oomsight || exit 1
python3 tools/make_app.py "$build/cli/oomsight" "$out"
