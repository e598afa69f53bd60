"$OOMSIGHT" help
