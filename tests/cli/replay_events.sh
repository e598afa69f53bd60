"$OOMSIGHT" replay --events --gpu-total 16GiB ../fixtures/traces/stranded.trace | tail -n 3
