# Slots for adapters go before the length that was asked for: the others wait. Rank stays: the adapters have it.
"$OOMSIGHT" plan --offline --gpu l4 -- vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 16384 --enable-lora --max-loras 16 --max-lora-rank 64 | sed -n '/^Suggested/,/Not enough/p'
