"$OOMSIGHT" dryrun --gpu A30 --load 3:4 -- true
