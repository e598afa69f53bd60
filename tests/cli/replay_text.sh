"$OOMSIGHT" replay ../fixtures/traces/stranded.trace
