"$OOMSIGHT" dryrun --quiet --gpu A30 --cuda 13 -- sh -c "setsid sleep 297.31 & exit 0" >/dev/null
# /proc itself: not every system has pgrep
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -q 'sleep 297[.]31' && echo "left behind" || echo "nothing left behind"
