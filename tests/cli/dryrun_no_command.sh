"$OOMSIGHT" dryrun --gpu A30
