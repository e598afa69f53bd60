# Rules of a learned release: those that a command asks for and whose source has changed are named, others are not.
work=$(mktemp -d); export XDG_CACHE_HOME="$work"
folder=$work/oomsight/learned; mkdir -p "$folder"; chmod 700 "$folder"
hash=$(printf 'a%.0s' $(seq 64)); file=$folder/vllm-0.99.0-$(echo "$hash" | cut -c1-12).json
flags='[{"names":["--model"],"dest":"model","kind":"str"},{"names":["--max-model-len"],"dest":"max_model_len","kind":"str"},{"names":["--gpu-memory-utilization"],"dest":"gpu_memory_utilization","kind":"float"}]'
doubt() { printf '{"rule":"%s","unit":"%s","added":%s,"removed":%s}' "$@"; }
keep() {
    printf '{"schema":"oomsight.learned/1","engine":"vllm","version":"0.99.0","package":"%s","flags":%s%s}\n' "$hash" "$flags" "$1" >"$file"; chmod 600 "$file"
}
plan() { echo "== $1"; shift; "$OOMSIGHT" plan --gpu h100 --offline --vllm 0.99.0 "$@" 2>&1 | sed -n '1p;/Not certain/,/^$/p'; }
serve="-- vllm serve ../fixtures/models/small-llama"
keep ""; plan "not compared" $serve
keep ',"rules":{"same":170,"doubt":[]}'; plan "nothing changed" $serve
other=$(doubt video_frames model_executor/models/qwen2_vl.py:_MAX_FRAMES_PER_VIDEO '["_MAX_FRAMES_PER_VIDEO = 99"]' 1)
share=$(doubt default_gpu_memory_utilization config/cache.py:CacheConfig '["gpu_memory_utilization = Field(default=0.5)","x = 1"]' 2)
keep ",\"rules\":{\"doubt\":[$other,$share]}"
plan "one that is asked for" $serve; plan "not by a command that names it" $serve --gpu-memory-utilization 0.8
less=$(doubt default_gpu_memory_utilization config/cache.py:CacheConfig '[]' 3)
keep ",\"rules\":{\"doubt\":[$less]}"; plan "only less" $serve
keep ",\"rules\":{\"doubt\":[{\"rule\":\"default_gpu_memory_utilization\",\"unit\":\"config/cache.py:CacheConfig\",\"gone\":true}]}"; plan "gone" $serve
many=$share; for rule in budget_rounds_up capture_list small_gpu_max_num_seqs graph_profiling full_graphs_default v2_profiles_sampler; do
    many=$many,$(doubt $rule "a.py:$rule" '["x = 2"]' 0); done
keep ",\"rules\":{\"doubt\":[$many]}"; plan "many" $serve
bad() { keep ",\"rules\":$2"; plan "$1" $serve; }
bad "no rule of that name" "{\"doubt\":[$(doubt no_such_rule a.py:b '["x"]' 1)]}"
bad "control characters" "{\"doubt\":[$(doubt default_gpu_memory_utilization 'a.py:\u001b[2J' '["\u202e\u0007 hf_abcdefghijklmnopqrstuvwxyz0123456789"]' 1)]}"
bad "a list of other things" '{"doubt":[1,"x",null,[[]]]}'
bad "no list" '{"doubt":{"rule":"sampler"}}'
bad "no object" '7'
bad "numbers for words" '{"doubt":[{"rule":"default_gpu_memory_utilization","unit":1,"added":7,"removed":"x","gone":2}]}'
rm -r "$work"
