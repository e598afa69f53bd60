# One process of the installed engine for many commands. Here it is a script, which does what each command is named after.
work=$(mktemp -d); mkdir -p "$work/tmp"
export TMPDIR="$work/tmp" HOME="$work" WORK="$work"
cat >"$work/python3" <<'END_OF_PYTHON'
#!/bin/sh
[ "$1" = -c ] && { printf 'cuda 13.0\ntorch 2.13.0\nengine 0.32.0\n'; exit 0; }
echo "$*" >>"$WORK/starts"
exec 3<"/proc/self/fd/${OOMSIGHT_ASK%,*}" 4>"/proc/self/fd/${OOMSIGHT_ASK#*,}"
while read -r request <&3; do
    id=${request#*\"id\": }; head="{\"id\":${id%%,*},\"schema\":\"oomsight.exact/1\",\"engine\":\"vllm\",\"version\":\"0.32.0\""
    case $request in
    *refused*) echo "$head,\"verdict\":\"refused\",\"stage\":\"config\",\"text\":\"not like that\"}" >&4 ;;
    *shorter*) echo "$head,\"verdict\":\"taken\",\"values\":{\"max_model_len\":1024}}" >&4 ;;
    *unknown*) echo "$head,\"verdict\":\"unknown\",\"text\":\"no draft here\"}" >&4 ;;
    *garbage*) echo "Segmentation fault" >&4 ;;
    *another*) echo "$head,\"verdict\":\"taken\"}" | sed 's/:[0-9]*,/:99,/' >&4 ;;
    *endless*) head -c 3000000 /dev/zero | tr '\0' x >&4 ;;
    *hangs*) sleep 60 ;;
    *dies*) echo "terminate called after throwing" >&2; exit 3 ;;
    *) echo "$head,\"verdict\":\"taken\",\"values\":{}}" >&4 ;;
    esac
done
END_OF_PYTHON
chmod +x "$work/python3"
cp -r ../fixtures/models/small-llama "$work/small-llama"; cd "$work" || exit
serve() { echo "vllm serve $1 --served-model-name $2 --max-model-len 4096"; }
for kind in taken refused garbage shorter another unknown endless taken-2 hangs dies taken-3; do serve small-llama "$kind"; done >kinds.sh
for kind in dies dies-2 dies-3 taken taken-2; do serve small-llama "$kind"; done >dying.sh
exact="--exact --python $work/python3 --offline"
started() { echo "started $(wc -l <starts) times"; rm -f starts; }
echo "== check"; "$OOMSIGHT" check $exact --gpu h100 --timeout 4 kinds.sh 2>&1 | sed "s#$work#WORK#g"; started
"$OOMSIGHT" check $exact --gpu h100 --timeout 4 --format json kinds.sh | sed -n 's/.*"engine_version": \("[0-9.]*"\).*"verdict": \("[a-z]*"\).*"exact": \(.*\), "best_flags".*/\1 \2 \3/p'; started
echo "== only losses"; "$OOMSIGHT" check $exact --gpu h100 dying.sh 2>&1 | grep -A1 "was not used"; started
echo "== a model of --models"; serve org/small-llama refused >named.sh; "$OOMSIGHT" check $exact --gpu h100 --models "$work" named.sh | sed "s#$work#WORK#g"; started
echo "== two devices"; { echo "# oomsight: gpu=h100"; serve small-llama taken; echo "# oomsight: gpu=l4x2"; serve small-llama shorter; } >two.sh
"$OOMSIGHT" check $exact two.sh | grep "installed"; sed 's/.*oomsight_ask/oomsight_ask/' starts; started
echo "== without"; "$OOMSIGHT" check --offline --gpu h100 named.sh --models "$work" --format json | grep -c exact
"$OOMSIGHT" check --python python3 --gpu h100 kinds.sh; echo "exit $?"
echo "== matrix"
cat >fleet.yaml <<'END_OF_FILE'
models: [small-llama]
gpus: [h100, l4]
versions: [0.32.0, 0.31.0]
flags:
  served-model-name: [taken, refused, dies]
END_OF_FILE
"$OOMSIGHT" matrix $exact --format json fleet.yaml | sed 's/.*"gpu": "\([^"]*\)", "flags": "\([^"]*\)", "version": "\([^"]*\)", "verdict": \("[a-z]*"\).*"exact": \(.*\)}$/\1 \2 \3 \4 \5/'; started
"$OOMSIGHT" matrix $exact --mode dryrun fleet.yaml; echo "exit $?"
echo "== nothing is left"; ls -A tmp; cd /; rm -rf "$work"
