# the times and the report's process are of the machine
"$OOMSIGHT" dryrun --gpu l4 --cuda 12 -- "$OOMSIGHT" run --selftest 2GiB 2>&1 | grep -E "^(ok|BROKEN)|hold|blocks"
"$OOMSIGHT" run --budget
"$OOMSIGHT" run --budget 2x -- true
"$OOMSIGHT" run --quiet -- sh -c "exit 5"
