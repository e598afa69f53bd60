#!/bin/sh
# The wheels of other systems, as far as they can be run here: try_wheels.sh FOLDER. pip installs each for its system into a folder; then
#   musllinux   by the loader of Debian's package musl; on ARM by qemu-user-static, with that package for arm64
#   Windows     by wine64, in a prefix of its own, without a display
#   macOS       its files are looked at, nothing is run (macho.py)
# Golden reports must be those of this machine, and every command must answer. What cannot be run is said. ARM with glibc: try_arm.sh.
set -u
folder=$(realpath "$1"); root=$(cd "$(dirname "$0")/../.." && pwd); work=$(mktemp -d); failed=0
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
export WINEPREFIX="$work/wine" WINEDEBUG=-all
trap '[ ! -d "$work/wine" ] || "$(dirname "$wine")/wineserver64" -k 2>/dev/null; rm -rf "$work"' EXIT
musl_arm=http://deb.debian.org/debian/pool/main/m/musl/musl_1.2.3-1_arm64.deb
fail() { echo "FAIL $*"; failed=1; }

# expect EXIT WORDS...
expect() {
    wanted=$1; shift
    timeout 120 "$work/build/cli/oomsight" "$@" >"$work/out" 2>&1 </dev/null
    got=$?
    [ "$got" -eq "$wanted" ] || { fail "$tag: oomsight $1: exit $got, not $wanted"; head -n 5 "$work/out"; }
}

# run_all WORDS...: what runs the command.
run_all() {
    mkdir -p "$work/build/cli"
    { echo '#!/bin/sh'; printf 'exec'; printf ' "%s"' "$@"; echo ' "$@"'; } >"$work/build/cli/oomsight"
    chmod +x "$work/build/cli/oomsight"
    timeout 300 "$work/build/cli/oomsight" --version >/dev/null 2>&1 </dev/null # wine makes its prefix
    "$root/tools/golden.sh" "$work/build" >"$work/golden" || { fail "$tag: golden reports"; cat "$work/golden"; }
    cd "$root/tests/fixtures" || exit 1
    expect 0 --version
    expect 0 plan --gpu 4090 -- vllm serve models/small-llama
    expect 1 explain kb/vllm/context-too-long/positive.log
    expect 1 replay traces/stranded.trace
    expect 3 check --offline --gpu h100 --models models deploy/serve.sh
    expect 0 gpus
    expect 0 engines
    expect 0 kb list
    expect 0 redact deploy/serve.sh
    expect 0 completion bash
    rm -f "$work/plan.html"
    expect 0 plan --format html --output "$work/plan.html" --gpu 4090 -- vllm serve models/small-llama
    grep -q '</html>' "$work/plan.html" || fail "$tag: --output"
    mkdir -p "$work/模型 é" && cp models/small-llama/config.json "$work/模型 é/"
    expect 0 plan --gpu 4090 -- vllm serve "$work/模型 é"
    grep -q '模型 é' "$work/out" || fail "$tag: the name of a folder is not shown as it is"
    "$work/build/cli/oomsight" explain <kb/vllm/context-too-long/positive.log >"$work/out" 2>&1
    [ $? -eq 1 ] || fail "$tag: a log from a pipe"
    case $tag in
    win*) expect 0 plan --gpu 4090 -- vllm serve 'models\small-llama' ;;
    *) expect 1 matrix --offline --models models matrix/fleet.yaml ;;
    esac
    echo "ran  $tag: $(tail -n 1 "$work/golden"), every command"
}

# with_library RUNNER TARGET LIBRARY: examples/plan.c loads what the wheel brings.
with_library() {
    "$root/tools/zig.sh" zig cc -O3 -s -target $2 -I "$root/include" -o "$work/lib/plan.exe" "$root/examples/plan.c" "$3" >"$work/out" 2>&1 ||
        { fail "$tag: examples/plan.c is not linked"; tail -n 3 "$work/out"; return; }
    (cd "$root/tests/fixtures" && LD_LIBRARY_PATH="$work/lib" timeout 120 "$1" "$work/lib/plan.exe" models/small-llama 4090) >"$work/out" 2>&1 </dev/null
    grep -q 'tokens of KV cache' "$work/out" && echo "ran  $tag: examples/plan.c with the library" || { fail "$tag: examples/plan.c"; head -n 5 "$work/out"; }
}

for wheel in "$folder"/*.whl; do
    tag=${wheel##*-none-}; tag=${tag%.whl}; to=$work/$tag
    case $tag in manylinux*) continue ;; esac
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --disable-pip-version-check --no-index --find-links "$folder" --platform "$tag" --only-binary=:all: --target "$to" oomsight ||
        { fail "$tag: pip does not install it"; continue; }
    ls "$to"/oomsight/stand-ins >/dev/null 2>&1 && fail "$tag: stand-ins inside"
    chmod +x "$to"/bin/* "$to"/oomsight/bin/* 2>/dev/null; rm -rf "${work:?}/lib"; mkdir "$work/lib"; cp "$to"/oomsight/lib/* "$work/lib/"
    case $tag in
    musllinux*x86_64)
        [ -e /lib/ld-musl-x86_64.so.1 ] || { echo "skip $tag: no package musl"; continue; }
        run_all "$to/bin/oomsight"; with_library env x86_64-linux-musl\ -dynamic "$work/lib/liboomsight.so.0" ;;
    musllinux*aarch64)
        curl -sfL --max-time 60 -o "$work/musl.deb" "$musl_arm" && dpkg-deb -x "$work/musl.deb" "$work/musl" && command -v qemu-aarch64-static >/dev/null ||
            { echo "skip $tag: no qemu or no musl for it"; continue; }
        run_all qemu-aarch64-static -L "$work/musl" "$to/oomsight/bin/oomsight" ;;
    win*)
        [ -x "$wine" ] || { echo "skip $tag: no wine64"; continue; }
        mkdir -p "$work/wine"
        run_all "$wine" "$to/bin/oomsight.exe"; with_library "$wine" x86_64-windows-gnu "$work/lib/liboomsight-0.dll" ;;
    macosx*) python3 "$root/tests/packages/macho.py" "$to/bin/oomsight" "$to"/oomsight/lib/*.dylib || failed=1
        echo "not run $tag: there is no macOS here" ;;
    *) fail "no way to try $tag" ;;
    esac
done
exit $failed
