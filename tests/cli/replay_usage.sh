"$OOMSIGHT" replay --pool-backend soft ../fixtures/traces/stranded.trace
