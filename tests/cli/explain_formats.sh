# Annotations, SARIF and Markdown of one refusal; a healthy log is silent in CI and exits 0.
log=../fixtures/kb/vllm/context-too-long/positive.log
"$OOMSIGHT" explain --format github $log; echo "exit $?"
"$OOMSIGHT" explain --format sarif $log; echo "exit $?"
"$OOMSIGHT" explain --format md $log; echo "exit $?"
echo 'INFO 01-02 03:04:05 [core.py:1] init engine (profile, create kv cache, warmup model) took 9.0 seconds' | "$OOMSIGHT" explain --format github; echo "exit $?"
"$OOMSIGHT" explain /no/such/file; echo "exit $?"
"$OOMSIGHT" explain --no-such-option; echo "exit $?"
# A path goes into a property of the annotation: commas and colons are escaped there.
work=$(mktemp -d); cp $log "$work/a,b:c%.log"; cd "$work" && "$OOMSIGHT" explain --format github 'a,b:c%.log' | grep -o '^::error file=[^,]*'; rm -r "$work"
