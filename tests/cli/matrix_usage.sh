# What is wrong is said in one line.
work=$(mktemp -d); cd "$work" || exit 9
try() { "$OOMSIGHT" matrix "$@" 2>&1; echo "exit $?"; }
try
try --diff 0.19.1
try --diff 0.19.1 0.19.1 m.yaml
try --mode guess m.yaml
try no.yaml
printf 'models: [m]\ngpus: [4090, 4999]\n' >m.yaml; try m.yaml
printf 'models: [m]\ngpus: [4090]\nversions: [0.32.0, newest]\n' >m.yaml; try m.yaml
printf 'models: [m]\ngpus: [4090]\nmdoe: plan\n' >m.yaml; try m.yaml
printf 'models: [no-such-model]\ngpus: [4090]\n' >m.yaml; try --offline m.yaml --format md
try m.yaml --format sarif --offline
printf 'models: [m]\ngpus: [4090]\nmode: dryrun\n' >m.yaml; OOMSIGHT_PYTHON=/no/python3 try m.yaml --no-cache --ray auto --quiet
rm -rf "$work"
