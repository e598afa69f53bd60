# --lang speaks louder than the environment.
log=../fixtures/kb/vllm/context-too-long/positive.log
LC_ALL=C.UTF-8 "$OOMSIGHT" kb show vllm/quant-repack --lang zh | sed -n 2p
LC_ALL=zh_CN.UTF-8 "$OOMSIGHT" kb show vllm/quant-repack --lang en | sed -n 2p
"$OOMSIGHT" explain --lang zh $log | sed -n 2p
"$OOMSIGHT" plan --lang zh --gpu 4090 --vllm 0.32.0 -- vllm serve ../fixtures/models/small-llama
"$OOMSIGHT" explain --lang fr $log; echo "exit $?"
"$OOMSIGHT" plan --lang zh --gpu 409 -- vllm serve m; echo "exit $?"
