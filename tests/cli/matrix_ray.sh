# A Python without the package cannot hand starts to Ray: it is named, with what to do.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nexec python3 -I -S "$@"\n' >"$work/bare"; chmod +x "$work/bare"
mkdir -p "$work/venv/bin"; printf '#!/bin/sh\n' >"$work/venv/bin/vllm"; chmod +x "$work/venv/bin/vllm"
printf 'models: [small-llama]\ngpus: [4090]\nversions: [0.32.0]\n' >"$work/fleet.yaml"
HOME=$work "$OOMSIGHT" matrix --offline --models "$PWD/../fixtures/models" --mode dryrun --engine "0.32.0=$work/venv" --ray local --python "$work/bare" "$work/fleet.yaml" 2>&1 |
    sed -E 's/: .* has no package/: PYTHON has no package/'
