# Every record is sound and proven by a log that shows it and one that does not.
"$OOMSIGHT" kb lint && "$OOMSIGHT" kb test ../fixtures/kb && "$OOMSIGHT" kb show nccl/shm-too-small && LC_ALL=zh_CN.UTF-8 "$OOMSIGHT" kb show nccl/shm-too-small && "$OOMSIGHT" kb show vllm/context-too-long | tail -n 1
"$OOMSIGHT" kb show no/such/record
