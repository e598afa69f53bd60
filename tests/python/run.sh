#!/bin/sh
# Types and tests of the binding against a build: run.sh BUILD_DIR [PYTHON...], by default python3 and one of every other release
# from 3.9 on that is installed. Needs pip for pytest and mypy; 77 without it.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd); build=$(cd "$1" && pwd); shift
if [ $# -eq 0 ]; then
    set -- python3; seen=$(python3 -c 'import sys; print(sys.version_info[:2])')
    for python in python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
        release=$("$python" -c 'import sys, venv, ensurepip; print(sys.version_info[:2] if sys.version_info >= (3, 9) else "")' 2>/dev/null) || continue
        case "$seen" in *"$release"*) ;; *) seen="$seen $release"; set -- "$@" "$python" ;; esac
    done
fi
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export OOMSIGHT_LIBRARY="$build/src/liboomsight.so.0" OOMSIGHT_COMMAND="$build/cli/oomsight" PYTHONPATH="$root/bindings/python" PYTHONPYCACHEPREFIX="$work/pyc"
unset PYTHONDONTWRITEBYTECODE # with a cache of our own everything would be compiled at each import
rc=0; first=1
for python in "$@"; do
    "$python" -m venv "$work/venv$first" && "$work/venv$first/bin/pip" install -q --disable-pip-version-check pytest $([ $first = 1 ] && echo mypy) >"$work/pip" 2>&1 ||
        { echo "pytest cannot be installed here"; exit 77; }
    "$work/venv$first/bin/python" --version
    [ $first = 1 ] && { "$work/venv$first/bin/mypy" --strict --cache-dir "$work/mypy" "$root/bindings/python/oomsight" || rc=1; }
    "$work/venv$first/bin/python" -m pytest -q -p no:cacheprovider "$root/tests/python" || rc=1
    first=$((first + 1))
done
exit $rc
