"$OOMSIGHT" replay --no-what-if --device 1 ../fixtures/traces/two-devices.json
"$OOMSIGHT" replay --no-what-if --device 0 --json ../fixtures/traces/two-devices.json
