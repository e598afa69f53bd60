# the stub tokenizer has the model's config beside it, which engines ask its folder for; nothing of it is left; it has letters, too
work=$(mktemp -d); mkdir "$work/model"; cp ../fixtures/models/small-llama/config.json "$work/model"
cat > "$work/vllm" <<'END'
#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" = --tokenizer ] && folder=$2; shift; done
ls "$folder"; cmp "$folder/config.json" "$(dirname "$0")/model/config.json" && echo same; grep -o '"e":[0-9]*' "$folder/tokenizer.json"; echo "$folder" > "$(dirname "$0")/folder"
END
chmod +x "$work/vllm"
"$OOMSIGHT" dryrun --gpu L4 --cuda 13 --output /dev/null -- "$work/vllm" serve "$work/model" 2>&1 | grep -v "added:"
[ -e "$(cat "$work/folder")" ] && echo "still there"
rm -rf "$work"
