# The flags of the best fix as words: they survive $( ), keep the user's own configuration, and promise no memory that is not there.
llama=../fixtures/models/small-llama moe=../fixtures/models/small-moe hybrid=../fixtures/models/small-hybrid
fit() { "$OOMSIGHT" plan --offline --max-fit "$@"; echo "exit $?"; }
echo "starts as it is"
fit --gpu 4090 -- vllm serve $llama
echo "one line, and the same words with a NUL behind each"
fit --gpu-total 5GiB --gpu-cc 8.9 -- vllm serve $llama
"$OOMSIGHT" plan --offline --max-fit --null --gpu-total 5GiB --gpu-cc 8.9 -- vllm serve $llama | tr '\0' '\n'
echo "planned again with them"
"$OOMSIGHT" plan --offline --gpu-total 5GiB --gpu-cc 8.9 -- vllm serve $llama $("$OOMSIGHT" plan --offline --max-fit --gpu-total 5GiB --gpu-cc 8.9 -- vllm serve $llama) | head -1
echo "weights in host memory: within what is told, never where it is the device's own"
fit --gpu-total 20GiB --gpu-cc 7.5 -- vllm serve $moe --dtype float16 --max-model-len 4096
fit --gpu-total 20GiB --gpu-cc 7.5 --host-ram 16GiB -- vllm serve $moe --dtype float16 --max-model-len 4096
fit --gpu-total 20GiB --gpu-cc 7.5 --host-ram 8GiB -- vllm serve $moe --dtype float16 --max-model-len 4096
fit --gpu orin-nx-16gb -- vllm serve $moe --max-model-len 4096
echo "the user's own --compilation-config is kept"
for own in '{"cudagraph_mode": "FULL_DECODE_ONLY"}' '{"cudagraph_capture_sizes": [1, 512], "cudagraph_mode": "PIECEWISE"}'; do
    "$OOMSIGHT" plan --offline --gpu 4060ti --vllm 0.19.1 -- vllm serve $hybrid --max-num-seqs 1024 --max-model-len 4096 --compilation-config "$own" | grep -e --compilation-config
done
"$OOMSIGHT" plan --offline --gpu 4060ti --vllm 0.19.1 -- vllm serve $hybrid --max-num-seqs 1024 --max-model-len 4096 | grep -e --compilation-config
true
