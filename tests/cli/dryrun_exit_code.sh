"$OOMSIGHT" dryrun --gpu A30x2 --cuda 13 -- sh -c "exit 7"
