# Engines as an axis: a release with its engine's name before it; what is none of them is told with its line.
fixtures=$PWD/../fixtures/models
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work" || exit
ln -s "$fixtures" models
fleet() { printf 'models: [small-llama, small-moe]\ngpus: [4090, A100-40]\nflags: [{name: chat, flags: --max-model-len 8192}]\nversions: [0.32.0, %s]\n' "$1" >fleet.yaml; }
matrix() { "$OOMSIGHT" matrix --offline --models models "$@" fleet.yaml 2>&1; }
fleet sglang=0.5.23
matrix
matrix --diff 0.32.0 sglang=0.5.23 --moved 1 | head -n 2
fleet sglang=0.1.0; matrix
fleet nemo=1; matrix
fleet sglang=new; matrix
fleet sglang=0.5.23; matrix --mode dryrun
