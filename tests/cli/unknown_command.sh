"$OOMSIGHT" planet
