# Names of GPUs as people write them: with the size on the box, another size, of another maker; no list is wider than a terminal.
say() { "$OOMSIGHT" plan --offline "$@" 2>&1 | sed -n 's/^oomsight: //p; s/^.* on \(NVIDIA.*\), vLLM.*/\1/p'; }
for gpu in 'RTX 4090 24GB' 4090-24g 'H100 80GB x2' 'NVIDIA A100-SXM4-80GB' 'L40S 48GiB' 'RTX 3080 12GB' 'RTX 4090 12GB' 'RTX 9999 24GB' 'h100 mig 1g.10gb' h100/mig-1g.10gb mig-1g.10gb 4090mig \
    mi300x 'RX 7900 XTX' 7900xtx 'AMD Instinct MI355X' 'Gaudi 3' 'TPU v5e' 'Apple M3 Max' 'Ascend 910B' trn2.48xlarge; do
    echo "$gpu: $(say --gpu "$gpu" -- vllm serve Qwen/Qwen3-4B)"
done
for command in 'vllm serv Qwen/Qwen3-4B' 'sglang serv --model-path Qwen/Qwen3-4B' sglang; do echo "$command: $(say --gpu l4 -- $command)"; done
for list in gpus kb models engines; do "$OOMSIGHT" $list | awk -v list=$list 'length > 100 { print list ": " $0 }'; done
