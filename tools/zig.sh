#!/bin/sh
# Run a command with zig and a Meson that knows it: zig.sh COMMAND... Both come from PyPI, into an environment made once outside
# the checkout. Exit 77 when they cannot be had.
set -u
home=${OOMSIGHT_ZIG:-$HOME/.cache/oomsight/zig}
if [ ! -f "$home/.ready" ]; then
    rm -rf "$home"
    { python3 -m venv "$home" && "$home/bin/pip" install -q --disable-pip-version-check --no-cache-dir 'ziglang>=0.14,<0.18' 'meson>=1.8,<2' &&
        ln -s "$("$home/bin/python" -c 'import ziglang; print(ziglang.__path__[0])')/zig" "$home/bin/zig" && touch "$home/.ready"; } ||
        { rm -rf "$home"; echo "ziglang and meson could not be installed"; exit 77; }
fi
PATH="$home/bin:$PATH" exec "$@"
