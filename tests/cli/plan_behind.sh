# Options of oomsight behind `--`, which the engine refuses; and that no engine has a flag of such a name.
for words in '--gpu-used 4GiB' --json '--vllm=0.30.0' '--gpu 4090' '--host-ram 64GiB --offline' '--max-num-seqs 8'; do
    echo "== $words"
    "$OOMSIGHT" plan --offline --gpu 4090 -- vllm serve Qwen/Qwen3-8B --max-model-len 8192 $words 2>&1 | grep '^WILL\|^oomsight'
done
"$OOMSIGHT" plan --help | grep -o '^ *--[a-z-]*' | tr -d ' ' | grep -v '^--help$' | while read -r option; do
    grep -l "\"$option\"[],]" ../../data/engines/*/flags.json | sed "s|^.*engines/\(.*\)/flags.json|$option is a flag of \1|"
done
