#!/bin/bash
# Every way to install from the source, tried: try_installs.sh. pip, uv, pipx and git+file, meson install with pkg-config and CMake, a Debian source
# package; from a clone and from the archive of a release, in a path with a space, as another user, with umask 027, from a source that cannot be
# written, with a library missing. Needs PyPI (77 without); pipx, debhelper, CMake and another user are tried where they can be.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd); work=$(mktemp -d); chmod 755 "$work"; trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
python=/usr/bin/python3; [ -x "$python" ] || python=$(command -v python3)
failed=0; shown=0
umask 022
claim() { # SENTENCE COMMAND...
    local sentence=$1 begun=$SECONDS; shift
    if "$@" >"$work/out" 2>&1; then echo "ok   $sentence ($((SECONDS - begun)) s)"; shown=$((shown + 1))
    else echo "FAIL $sentence"; grep -E 'ERROR|rror:' "$work/out" | head -n 5; tail -n 10 "$work/out"; failed=$((failed + 1)); fi
}
# answers PROGRAM: the command finds its library and its stand-ins, from another folder.
answers() {
    local code
    (cd / && "$1" plan --offline --gpu h100 -- vllm serve Qwen/Qwen3-8B) >"$work/answer"; code=$?
    [ $code -eq 0 ] && grep -q 'Qwen3-8B' "$work/answer" || { echo "plan: exit $code"; return 1; }
    (cd / && "$1" dryrun --gpu 4090 --cuda 12 --json -- sh -c 'exit 0') >/dev/null || { echo "dryrun: exit $?"; return 1; }
}
imports() { # PYTHON: the package answers, and the library is there once
    (cd / && "$1" -c 'import glob, os, oomsight
assert oomsight.plan("vllm serve Qwen/Qwen3-8B", gpu="h100", hub=False) and oomsight.gpus()
inside = sorted((os.path.getsize(f), f) for f in glob.glob(os.path.dirname(oomsight.__file__) + "/**/*", recursive=True) if os.path.isfile(f))
assert inside[-1][1].endswith("lib/liboomsight.so.0") and inside[-2][0] * 4 < inside[-1][0], inside[-2:]')
}
# The same sources are compiled once: the first build fills the cache.
if command -v ccache >/dev/null; then
    mkdir -m 777 "$work/ccache"
    export CC='ccache gcc' CCACHE_DIR=$work/ccache CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 CCACHE_UMASK=000
fi
mkdir -m 1777 "$work/tmp"; export TMPDIR=$work/tmp # where pip puts a clone: the cache knows its files, too
unset MAKEFLAGS
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
"$python" -m venv "$work/tools" && "$work/tools/bin/pip" install -q 'uv==0.13.8' 'pipx==1.18.4' 'meson-python>=0.18,<0.23' ninja >"$work/out" 2>&1 ||
    { tail -n 2 "$work/out"; echo "PyPI cannot be asked"; exit 77; }
# What is in the tree now, as a commit: a change is tried before it is made.
git clone -q "$root" "$work/clone" && (cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$work/clone") &&
    (cd "$work/clone" && git add -A && git -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m tree) || exit 1

echo "--- pip, from the archive, in a path with a space, read-only, umask 027, as another user"
place="$work/any place"; mkdir "$place"; git -C "$work/clone" archive --prefix=oomsight/ HEAD | tar -x -C "$place"
chmod -R a-w "$place/oomsight"
as_other() { "$@"; }
if [ "$(id -u)" = 0 ]; then
    mkdir "$work/home"; chown 65534:65534 "$work/home"
    as_other() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$work/home" "$@"; }
else mkdir "$work/home"; fi
pip_archive() { cd "$place/oomsight" && as_other bash -c 'umask 027 && "$1" -m venv "$HOME/env" && "$HOME/env/bin/pip" install .' - "$python"; }
claim "pip install ." pip_archive
claim "its command answers" as_other bash -c "$(declare -f answers); work=\$HOME; answers \"\$HOME/env/bin/oomsight\""
claim "its Python package answers, with one library" as_other bash -c "$(declare -f imports); imports \"\$HOME/env/bin/python\""
claim "its pages of the manual are there" as_other test -f "$work/home/env/share/man/man1/oomsight-plan.1"
claim "pip uninstalls it whole" as_other bash -c '"$HOME/env/bin/pip" uninstall -qy oomsight && ! find "$HOME/env" -name "*oomsight*" | grep .'

echo "--- from a clone"
claim "pip install git+file://" bash -c '"$1" -m venv "$2" && "$2/bin/pip" install "git+file://$3"' - "$python" "$work/git" "$work/clone"
claim "its command answers" answers "$work/git/bin/oomsight"
uv_tool() { (cd "$work/clone" && UV_TOOL_DIR="$work/uv" UV_TOOL_BIN_DIR="$work/uv-bin" UV_CACHE_DIR="$work/uv-cache" "$work/tools/bin/uv" tool install -q --python "$python" .); }
claim "uv tool install ." uv_tool
claim "its command answers" answers "$work/uv-bin/oomsight"
pipx_tool() { (cd "$work/clone" && PIPX_HOME="$work/pipx" PIPX_BIN_DIR="$work/pipx-bin" PIPX_MAN_DIR="$work/pipx-man" "$work/tools/bin/pipx" install --python "$python" .); }
claim "pipx install ." pipx_tool
claim "its command answers" answers "$work/pipx-bin/oomsight"
claim "nothing is left in the clone" bash -c '! git -C "$1" status --porcelain --ignored | grep .' - "$work/clone"

echo "--- meson install, from the archive of meson dist"
options=(-Dbuildtype=release -Db_ndebug=if-release -Ddebug=false -Dcommand=linked -Ddefault_library=shared -Dtests=false)
dist() {
    PATH="$work/tools/bin:$PATH" meson setup "$work/clone/build" "$work/clone" "${options[@]}" --prefix "$work/prefix" --libdir lib &&
        PATH="$work/tools/bin:$PATH" meson dist -C "$work/clone/build" --no-tests --formats gztar && mkdir "$work/dist" &&
        tar -x -C "$work/dist" --strip-components 1 -f "$work/clone/build/meson-dist"/oomsight-*.tar.gz
}
claim "meson dist" dist
meson_install() {
    cd "$work/dist" && PATH="$work/tools/bin:$PATH" meson setup build . "${options[@]}" --prefix "$work/prefix" --libdir lib &&
        PATH="$work/tools/bin:$PATH" meson install -C build
}
claim "meson install" meson_install
export LD_LIBRARY_PATH="$work/prefix/lib"
claim "its command answers" answers "$work/prefix/bin/oomsight"
claim "completions and manual are installed" test -f "$work/prefix/share/bash-completion/completions/oomsight" -a -f "$work/prefix/share/zsh/vendor-completions/_oomsight" \
    -a -f "$work/prefix/share/fish/vendor_completions.d/oomsight.fish" -a -f "$work/prefix/share/man/man1/oomsight.1"
by_pkg_config() {
    export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig"
    ! pkg-config --static --libs oomsight | grep -q curl && gcc -o "$work/plan" "$root/examples/plan.c" $(pkg-config --cflags --libs oomsight) &&
        "$work/plan" "$root/tests/fixtures/models/small-llama" 4090 | grep 'tokens of KV cache'
}
claim "a program is built by pkg-config" by_pkg_config
by_cmake() {
    mkdir "$work/cmake" && printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(trial C)' 'find_package(oomsight 0.1 REQUIRED)' \
        "add_executable(trial $root/examples/plan.c)" 'target_link_libraries(trial oomsight::oomsight)' >"$work/cmake/CMakeLists.txt" &&
        env -u CC cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$work/prefix" && cmake --build "$work/cmake/build" &&
        "$work/cmake/build/trial" "$root/tests/fixtures/models/small-llama" 4090 | grep 'tokens of KV cache'
}
if command -v cmake >/dev/null; then claim "a program is built by CMake" by_cmake; else echo "skip CMake: not installed"; fi
unset LD_LIBRARY_PATH
missing() {
    ! PKG_CONFIG_LIBDIR=$work PATH="$work/tools/bin:$PATH" meson setup "$work/none" "$work/dist" --wrap-mode=nofallback >"$work/said" 2>&1 &&
        grep 'sudo apt install libjansson-dev' "$work/said"
}
claim "a library that is missing is named with the line that installs it" missing

echo "--- the Debian source package"
deb() {
    cp -r "$work/dist" "$work/deb" && rm -rf "$work/deb/build" && cp -r "$work/deb/packaging/debian" "$work/deb/debian" && cd "$work/deb" && dpkg-buildpackage -us -uc -b -d &&
        for package in "$work"/*.deb; do dpkg -x "$package" "$work/debroot" || return 1; done
}
if command -v dh >/dev/null && command -v dpkg-buildpackage >/dev/null; then
    claim "dpkg-buildpackage" deb
    claim "its version is the one of meson.build" test -f "$work/oomsight_$(sed -n "s/^  version: '\(.*\)',/\1/p" "$root/meson.build")_$(dpkg --print-architecture).deb"
    LD_LIBRARY_PATH=$(echo "$work"/debroot/usr/lib/*-linux-gnu); export LD_LIBRARY_PATH
    claim "its command answers" bash -c "$(declare -f answers); work=$work; OOMSIGHT_SHIM_DIR=\"$LD_LIBRARY_PATH/oomsight\" answers \"$work/debroot/usr/bin/oomsight\""
    claim "its Python package answers" env PYTHONPATH="$work/debroot/usr/lib/python3/dist-packages" OOMSIGHT_COMMAND="$work/debroot/usr/bin/oomsight" "$python" -c \
        'import oomsight; assert oomsight.plan("vllm serve Qwen/Qwen3-8B", gpu="h100", hub=False)'
    unset LD_LIBRARY_PATH
    # The maintainers have no address yet.
    if command -v lintian >/dev/null; then claim "lintian has no error" lintian --allow-root --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$work"/*.deb; fi
else echo "skip the Debian source package: no debhelper"; fi
echo "installs: $shown claims hold, $failed do not, $SECONDS s"
[ "$failed" -eq 0 ]
