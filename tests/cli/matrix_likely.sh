# A point inside the error bar counts as what it likely does, in the sentence, the table, JUnit and the exit code; what does not start has the
# whole command that does.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
matrix() {
    cat >"$work/fleet.yaml" <<END
models: [small-llama]
gpus: [{gpu: L4, total: 22GiB, used: $1}]
versions: ["0.10.2"]
END
    shift
    "$OOMSIGHT" matrix --offline --models ../fixtures/models "$work/fleet.yaml" "$@"
    echo "exit $?"
}
matrix 1.65GiB | sed 's/ [0-9]*,[0-9]*$/ N/'
matrix 1.74GiB
matrix 1.74GiB --lang zh
matrix 1.74GiB --points "$work/points" >/dev/null; grep -o '"likely": *[^,]*\|"command": *"[^"]*"' "$work/points" | sed "s@serve .*/small-llama@serve small-llama@"
matrix 1.74GiB --format junit | grep -o '<failure message="[^"]*"'
