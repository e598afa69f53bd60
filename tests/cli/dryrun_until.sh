"$OOMSIGHT" dryrun --gpu A30 --cuda 13 --until tea -- true
