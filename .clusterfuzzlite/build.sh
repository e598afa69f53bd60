#!/bin/bash -eu
# Targets, corpora and dictionaries into $OUT. The engine and the sanitizers come in CFLAGS and LIB_FUZZING_ENGINE; Without a container:
# CC=clang CFLAGS='-O1 -g -fsanitize=address,undefined' OUT=/tmp/out WORK=/tmp .clusterfuzzlite/build.sh
build=${WORK:-/tmp}/build-clusterfuzzlite
rm -rf "$build"
meson setup "$build" -Dfuzz=true -Dfuzz_engine="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" -Ddefault_library=static -Dbuildtype=plain
targets=$(cd tests/fuzz && ls fuzz_*.c | sed 's/\.c$//')
ninja -C "$build" $(for target in $targets; do echo "tests/fuzz/$target"; done)
made=$(mktemp -d)
python3 tests/fuzz/seeds.py "$made"
mkdir -p "$OUT/lib"
for target in $targets; do
    name=${target#fuzz_}
    cp "$build/tests/fuzz/$target" "$OUT/"
    [ ! -f "tests/fuzz/$name.dict" ] || cp "tests/fuzz/$name.dict" "$OUT/$target.dict"
    case $name in snapshot | whatif) longest=262144 ;; *) longest=65536 ;; esac
    printf '[libfuzzer]\nmax_len = %s\ntimeout = 20\n' "$longest" >"$OUT/$target.options"
    python3 - "$OUT/${target}_seed_corpus.zip" "tests/fuzz/corpus/$name" "$made/$name" <<'END'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as out:
    for folder in filter(os.path.isdir, sys.argv[2:]):
        for name in sorted(set(os.listdir(folder)) - set(out.namelist())): out.write(os.path.join(folder, name), name)
END
    # Targets run on machines without the libraries: they lie beside them.
    ldd "$OUT/$target" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|libpthread|librt|ld-linux)/ {print $3}' | xargs -r -I{} cp -n {} "$OUT/lib/"
    ! command -v patchelf >/dev/null || patchelf --set-rpath '$ORIGIN/lib' "$OUT/$target"
done
rm -rf "$made"
