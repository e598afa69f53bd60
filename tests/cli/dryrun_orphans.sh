"$OOMSIGHT" dryrun --quiet --gpu A30 --cuda 13 -- sh -c "setsid sleep 297.31 & exit 0" >/dev/null
pgrep -f "sleep 297[.]31" >/dev/null && echo "left behind" || echo "nothing left behind"
