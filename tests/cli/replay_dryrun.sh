"$OOMSIGHT" replay --smallest ../fixtures/traces/dryrun.trace
