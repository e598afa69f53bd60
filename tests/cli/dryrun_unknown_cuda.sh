"$OOMSIGHT" dryrun --gpu A30 --cuda 11 -- true
