# A program that is no server serves nothing: neither the headline nor the reason says so, in any language.
log=$(mktemp); trap 'rm -f "$log"' EXIT
printf '%s\n' 'Traceback (most recent call last):' '  File "train.py", line 88, in <module>' '    optimizer.step()' '  File "/x/torch/optim/adamw.py", line 121, in _init_group' \
    'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 23.69 GiB total capacity; 22.40 GiB already allocated; 12.00 MiB free; 22.60 GiB reserved in total by PyTorch)' >"$log"
"$OOMSIGHT" explain "$log" | grep -e "^OUT" -e Phase -e serving
"$OOMSIGHT" explain --lang zh "$log" | head -n 1
