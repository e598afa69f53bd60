# What .ci/run and .ci/nightly are written with: steps that are timed, counted and told in one line, builds, floors. Sourced, never run.

passed=0; failed=0; skipped=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
declare -A pids

# step NAME COMMAND...: one line when it passes or is skipped (exit 77), its output when it fails.
step() { take "$@"; report "$1"; }
# beside NAME COMMAND... and later ended NAME: on the other core while further steps run.
beside() { take "$@" & pids[$1]=$!; }
ended() { wait "${pids[$1]}"; report "$1"; }

# lane NAME FUNCTION and later joined NAME: the steps of a function, one after the other, while further steps run.
lane() { (passed=0; failed=0; skipped=0; "$2"; echo "$passed $failed $skipped" >"$logs/$1.sum") >"$logs/$1.out" 2>&1 & pids[$1]=$!; }
joined() {
    local p=0 f=1 s=0
    wait "${pids[$1]}"; cat "$logs/$1.out"
    read -r p f s <"$logs/$1.sum"
    passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
}

take() {
    local name=$1 start=$SECONDS code TIMEFORMAT='%U %S'; shift
    # In a shell of its own: a lane that ends meanwhile is a child of this one, and its time would be counted here.
    ( time "$@" >"$logs/$name.log" 2>&1 ) 2>"$logs/$name.time"; code=$?
    echo "$code $((SECONDS - start)) $(awk '{printf "%.0f", $1 + $2}' "$logs/$name.time")" >"$logs/$name.end"
}
# What failed by name first, then the end: a suite's last lines alone may be of tests that passed.
told() { grep -E '(^| )(FAIL|TIMEOUT|ERROR) |error:|^not ok|AssertionError' "$1" | head -n 15; tail -n 25 "$1"; }
report() {
    local name=$1 code=1 seconds="?" processor="?"
    read -r code seconds processor <"$logs/$name.end"
    if [ "$code" -eq 0 ]; then
        passed=$((passed + 1)); echo "ok   $name ($seconds s, $processor s of processor time)"
    elif [ "$code" -eq 77 ]; then
        skipped=$((skipped + 1)); echo "skip $name: $(tail -n 1 "$logs/$name.log")"
    else
        failed=$((failed + 1)); echo "FAIL $name ($seconds s)"; told "$logs/$name.log" | cut -c 1-300 | sed 's/^/     /'
    fi
}
# result STAMP: the last line, the times of the steps kept for `make gate-times`, and, where all passed on a tree without changes, its
# hash in .git/STAMP.
result() {
    local folder; folder=$(git rev-parse --git-dir 2>/dev/null) || folder=
    if [ -n "$folder" ]; then
        for end in "$logs"/*.end; do read -r _ seconds processor <"$end"; echo "$(basename "$end" .end) $seconds $processor"; done >"$folder/$1-times"
        rm -f "$folder/$1-passed"
        if [ "$failed" -eq 0 ] && [ -z "$(git status --porcelain)" ]; then git rev-parse 'HEAD^{tree}' >"$folder/$1-passed"; fi
    fi
    [ "$skipped" -eq 0 ] || echo "$skipped skipped"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

# missing PACKAGE...: those of Debian's packages that are not installed.
missing() { local package; for package in "$@"; do dpkg -s "$package" >/dev/null 2>&1 || echo "$package"; done; }
install() {
    local needed; needed=$(missing "$@")
    [ -z "$needed" ] && return 0
    apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $needed
}
install_packages() {
    install gcc g++ clang clang-format clang-tidy meson ninja-build pkg-config python3 git make ccache \
        libjansson-dev libyaml-dev libcurl4-openssl-dev libarchive-dev libpcre2-dev libcmocka-dev uthash-dev libclang-rt-14-dev libstdc++-12-dev \
        libzstd-dev liblz4-dev libbz2-dev liblzma-dev zlib1g-dev binutils python3-venv python3-pip abigail-tools
}
# Pages are looked at in a browser where there is one; without it those tests are skipped.
install_browser() { command -v chromium >/dev/null || install chromium || { echo "no browser to be had"; return 77; }; }

# A compiler's cache where there is one: the same builds are made again for every change.
cached() { if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi; }
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$PWD

# configure DIR COMPILER MESON-OPTIONS... and build DIR COMPILER MESON-OPTIONS...: no warning is let through.
configure() { local dir=$1 compiler; compiler=$(cached "$2"); shift 2; rm -rf "$dir" && CC=$compiler meson setup "$dir" --werror "$@"; }
build() { configure "$@" && ninja -C "$1" -j2; }
# tests DIR MESON-OPTIONS...: a test is ended only when it takes ten times its limit, so that a busy machine decides nothing.
tests() { local dir=$1; shift; meson test -C "$dir" --print-errorlogs --num-processes 2 --timeout-multiplier 10 "$@"; }

# The command as WebAssembly, and its page in a browser: the same answers as here.
app() { rm -rf build-wasm build/app; tools/app.sh build-wasm build/app; }
app_page() {
    [ -f build/app/oomsight.wasm ] || { echo "the page was not built"; return 77; }
    local code=0
    python3 tests/web/test_same.py build/cli/oomsight build/app || code=$?
    python3 tests/web/test_app.py build/cli/oomsight build/app "$@" || code=$?
    return "$code"
}

# floor SCORER DATA: accuracy; no figure may fall below its floor (tests/floors.json). Without the data the step is skipped and says so.
floor() { python3 tools/check_floors.py build/cli/oomsight "$@"; }
with_data() { local data=$1; shift; if [ -e "$data" ]; then "$@"; else echo "no data at $data"; return 77; fi; }
formatted() { git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror; }
