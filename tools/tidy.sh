#!/bin/sh
# clang-tidy over the library and the command: tidy.sh BUILD_DIR (with compile_commands.json)
set -eu
cd "$(dirname "$0")/.."
git ls-files 'src/*.c' 'cli/*.c' | xargs -P2 -n4 clang-tidy --quiet -p "$1"
