# What a device costs, measured on stand-ins whose costs are known (64 KiB a graph, 10 KiB a kernel in it, contexts of data/gpus): the same figures come out,
# and the record is what its schema says. Without a driver it says so.
"$OOMSIGHT" dryrun --gpu h100x2 --cuda 13 --output /dev/null -- "$OOMSIGHT" doctor --measure 2>&1
"$OOMSIGHT" dryrun --gpu 4090 --gpu-used 3GiB --cuda 12 --output /dev/null -- "$OOMSIGHT" doctor --measure --device 0 2>&1 | grep -v '^[{} ]*"'
"$OOMSIGHT" dryrun --gpu gb10 --cuda 13 --output /dev/null -- "$OOMSIGHT" doctor --measure --lang zh 2>&1 | grep -v '^[{} ]*"'
"$OOMSIGHT" dryrun --gpu A30x2 --cuda 12 --output /dev/null -- "$OOMSIGHT" doctor --measure --json 2>&1 | python3 ../../tools/check_schema.py ../../data/schema/measure.schema.json
"$OOMSIGHT" doctor --measure --json | python3 ../../tools/check_schema.py ../../data/schema/measure.schema.json
"$OOMSIGHT" doctor --measure --device one
"$OOMSIGHT" doctor --measure --timeout 0
"$OOMSIGHT" doctor --measure
