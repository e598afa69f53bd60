"$OOMSIGHT" replay --json --no-what-if ../fixtures/traces/stranded.trace
