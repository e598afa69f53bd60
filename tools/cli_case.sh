#!/bin/sh
# Run one CLI case: cli_case.sh BINARY CASE.sh. The case sees $OOMSIGHT; its streams and exit code are compared with the
# files beside it. OOS_REWRITE=1 writes them instead.
set -u
OOMSIGHT=$(realpath "$1"); case=$(realpath "$2"); base=${case%.sh}
export OOMSIGHT NO_COLOR=1 LC_ALL=C.UTF-8
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$(dirname "$case")" || exit 99
sh "$case" >"$work/stdout" 2>"$work/stderr" </dev/null
echo $? >"$work/exit"
[ -f "$base.exit" ] || echo 0 >"$work/want"; [ -f "$base.exit" ] && cp "$base.exit" "$work/want"
if [ "${OOS_REWRITE:-0}" = 1 ]; then
    for part in stdout stderr exit; do cp "$work/$part" "$base.$part"; done
    exit 0
fi
bad=0
for part in stdout stderr; do
    [ -f "$base.$part" ] || continue
    diff -u "$base.$part" "$work/$part" || bad=1
done
diff "$work/want" "$work/exit" || { echo "exit code differs; stderr was:"; cat "$work/stderr"; bad=1; }
exit $bad
