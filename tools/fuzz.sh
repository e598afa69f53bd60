#!/bin/sh
# Fuzz one target: fuzz.sh BUILD TARGET [RUNS]. BUILD has -Dfuzz=true. FUZZ_SECONDS ends it by time instead. It must make more new inputs than it
# was given. The seed is a new one, and printed; FUZZ_SEED repeats a run. FUZZ_SAMPLE: so many inputs to begin with, drawn by the
# seed, for a target that is slow. FUZZ_FOUND keeps what is found in a folder: findings (crash-*, timeout-*, oom-*), which end with 1
# (libFuzzer's own 77 would read as skipped), and new inputs in FUZZ_FOUND/corpus (FUZZ_CORPUS: elsewhere). FUZZ_TIMEOUT seconds for one
# input. FUZZ_MORE: a folder of more inputs. Inputs may become as long as real files are: configs and logs 64 KB, memory snapshots 256 KB
# (FUZZ_MAX_LEN).
set -eu
build=$1; target=$2; runs=${3:-100000}
cd "$(dirname "$0")/.."
found=${FUZZ_FOUND:-.}
corpus=${FUZZ_CORPUS:-${FUZZ_FOUND:+$FUZZ_FOUND/corpus}}
corpus=${corpus:-$(mktemp -d)}
seed=${FUZZ_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python3 tests/fuzz/seeds.py "$made" >/dev/null
mkdir -p "$found" "$corpus" "$made/$target" "$made/sample"
set -- "$corpus" "tests/fuzz/corpus/$target" "$made/$target" ${FUZZ_MORE:+"$FUZZ_MORE"}
if [ -n "${FUZZ_SAMPLE:-}" ]; then
    python3 - "$seed" "$FUZZ_SAMPLE" "$made/sample" "$@" <<'PY'
import os, random, shutil, sys
files = [os.path.join(d, n) for d in sys.argv[4:] for n in sorted(os.listdir(d))] if len(sys.argv) > 4 else []
chosen = random.Random(int(sys.argv[1])).sample(files, min(int(sys.argv[2]), len(files)))
for number, path in enumerate(chosen): shutil.copy(path, os.path.join(sys.argv[3], str(number)))
PY
    set -- "$corpus" "$made/sample"
    [ "$(ls "$corpus" | wc -l)" -eq 0 ] || { empty=$(mktemp -d "$made/new.XXXX"); set -- "$empty" "$made/sample"; }
fi
inputs=$(for folder in "$@"; do ls "$folder"; done | wc -l)
case $target in snapshot | whatif) longest=262144 ;; *) longest=65536 ;; esac
echo "fuzz $target: seed $seed, $inputs inputs to begin with; again by FUZZ_SEED=$seed"
set -- "-max_len=${FUZZ_MAX_LEN:-$longest}" "-timeout=${FUZZ_TIMEOUT:-20}" -error_exitcode=1 -timeout_exitcode=1 -rss_limit_mb=2048 -print_final_stats=1 "-seed=$seed" "-artifact_prefix=$found/" "$@"
if [ -f "tests/fuzz/$target.dict" ]; then set -- "-dict=tests/fuzz/$target.dict" "$@"; fi
if [ -n "${FUZZ_SECONDS:-}" ]; then set -- "-max_total_time=$FUZZ_SECONDS" "$@"; else set -- "-runs=$runs" "$@"; fi
code=0
"$build/tests/fuzz/fuzz_$target" "$@" 2>"$made/log" || code=1
cat "$made/log" >&2
if [ "$code" -ne 0 ]; then
    echo "found, kept in $found: $(find "$found" -maxdepth 1 -type f -regextype posix-extended -regex '.*/(crash|timeout|oom|leak|slow-unit)-[^/]*' -printf '%f ')"
    echo "mend it, then keep the input as a test: cp $found/crash-... tests/fuzz/corpus/$target/"
    exit 1
fi
done_=$(sed -n 's/^stat::number_of_executed_units: *//p' "$made/log" | tail -n 1)
if [ "${done_:-0}" -lt $((2 * inputs)) ]; then
    echo "only $done_ executions of $inputs inputs: a replay, no search; give it fewer to begin with (FUZZ_SAMPLE)"
    exit 1
fi
echo "fuzz $target: $done_ executions, nothing found; new inputs are in $corpus: cp the shortest of them to tests/fuzz/corpus/$target/"
