# One misspelt model is one paragraph, however many points it takes along.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
printf 'versions: [0.19.1, 0.32.0]\nblocks:\n  - models: [/no/such/model]\n    gpus: [4090, L4]\n    flags: [--max-model-len 4096, --max-model-len 8192]\n' >"$work/m.yaml"
"$OOMSIGHT" matrix --offline --no-cache "$work/m.yaml" 2>/dev/null | sed -n '/no answer/,$p'
