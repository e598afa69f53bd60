gzip -nc ../fixtures/traces/stranded.trace | "$OOMSIGHT" replay --no-what-if --smallest -
