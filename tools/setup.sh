#!/bin/sh
# meson setup without its talk: setup.sh DIR [OPTIONS]. When it fails: meson's own error, and the line that installs what a build needs.
said=$(meson setup "$@" 2>&1) && exit 0
echo "$said" | grep -E -A1 'ERROR|rror:' >&2 || echo "$said" | tail -n 5 >&2
cat >&2 <<'NEEDED'
On Debian and Ubuntu a build needs:
    sudo apt install gcc g++ python3 meson ninja-build pkg-config libjansson-dev libyaml-dev libcurl4-openssl-dev \
        libarchive-dev libpcre2-dev uthash-dev libcmocka-dev
and the wheel and the packages beyond that:
    sudo apt install libzstd-dev liblz4-dev libbz2-dev liblzma-dev zlib1g-dev
NEEDED
exit 1
