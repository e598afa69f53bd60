# A log that is not there yet, grows line by line, is moved away, is made anew, and is cut: each failure is told once.
log=$(mktemp -d)/engine.log
oom="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s MiB. GPU 0 has a total capacity of 23.57 GiB of which 54.25 MiB is free. Of the allocated memory 22.88 GiB is allocated by PyTorch, and 188.29 MiB is reserved by PyTorch but unallocated.\n"
frame='  File "/usr/lib/vllm/v1/worker/gpu_worker.py", line 381, in load_model\n'
"$OOMSIGHT" explain --follow --idle 4 --json "$log" >"$log.out" &
sleep 0.5
printf "$frame" >"$log"; sleep 0.3; printf "$oom" 100 >>"$log"
sleep 2
mv "$log" "$log.1"; printf "INFO first line of the next file\n$frame$oom" 200 >"$log"
sleep 2
: >"$log"; sleep 0.3; printf "$frame$oom" 300 >"$log"
wait $!
echo "exit $?"
python3 - "$log.out" <<'P'
import json, sys
for line in open(sys.argv[1]):
    i = json.loads(line)
    print(i["phase"], i["numbers"]["tried_bytes"] >> 20, "MiB, lines", i["first_line"], "to", i["last_line"])
P
rm -r "$(dirname "$log")"
printf "$frame$oom" 400 | "$OOMSIGHT" explain --follow - | grep -o "Tried to allocate 400 MiB" | head -n 1
"$OOMSIGHT" explain --state /tmp x.log; echo "usage $?"
