"$OOMSIGHT" dryrun --gpu NoSuchThing --cuda 13 -- true
