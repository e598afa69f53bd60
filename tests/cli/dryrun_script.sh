# a script, or `oomsight run`, that starts a Python: that one computes small integers, too
work=$(mktemp -d)
ask="import sys; open('$work/seen', 'a').write(str('oomsight_aid' in sys.modules) + chr(10))"
"$OOMSIGHT" dryrun --quiet --gpu A30 --cuda 13 -- sh -c "python3 -c \"$ask\"" >/dev/null
"$OOMSIGHT" dryrun --quiet --gpu A30 --cuda 13 -- "$OOMSIGHT" run --budget 8GiB --quiet -- python3 -c "$ask" >/dev/null
cat "$work/seen"; rm -rf "$work"
