# This machine for an issue: on the stand-ins it has the devices that were asked for; secrets stay out; the JSON is what its schema says.
# What is of the machine under the test itself (RAM, system, folders) is cut away.
seen() { grep -E "driver|GPU|API_KEY|CUDA_VISIBLE|MIG" | grep -v "OOMSIGHT_"; }
"$OOMSIGHT" dryrun --gpu 4090x2 --gpu-used 3GiB --cuda 13 --output /dev/null -- env VLLM_API_KEY=sk-1234567890abcdef1234567890 CUDA_VISIBLE_DEVICES=1 "$OOMSIGHT" doctor 2>&1 | seen
"$OOMSIGHT" dryrun --gpu A30x2 --cuda 12 --output /dev/null -- "$OOMSIGHT" doctor --json 2>&1 | python3 ../../tools/check_schema.py ../../data/schema/doctor.schema.json
"$OOMSIGHT" doctor --json | python3 ../../tools/check_schema.py ../../data/schema/doctor.schema.json
"$OOMSIGHT" doctor --lang zh 2>&1 | grep "内存" | sed "s@[0-9][0-9.]* [KMG]iB@N@g"
"$OOMSIGHT" doctor tea
