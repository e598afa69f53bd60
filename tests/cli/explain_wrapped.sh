# The same answer for every wrapper: the fingerprint does not depend on it.
log=../fixtures/kb/vllm/kv-alloc-no-headroom/positive.log
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
print() { grep -o '"fingerprint": "[0-9a-f]*"' | cut -d'"' -f4; }
want=$("$OOMSIGHT" explain --json $log | print)
gzip -c $log >"$work/a.gz"; tar cf "$work/a.tar" -C "$(dirname $log)" positive.log
python3 - $log "$work" <<'P'
import json, sys
log, work = open(sys.argv[1]).read().splitlines(), sys.argv[2]
open(work + "/docker", "w").writelines(json.dumps({"log": l + "\n", "stream": "stderr", "time": "2025-01-01T00:00:00Z"}) + "\n" for l in log)
open(work + "/cri", "w").writelines("2025-01-01T00:00:00.000000000Z stderr F " + l + "\n" for l in log)
open(work + "/journal", "w").writelines("__REALTIME_TIMESTAMP=1\nMESSAGE=" + l + "\n\n" for l in log)
open(work + "/crlf", "w", newline="").writelines(l + "\r\n" for l in log)
open(work + "/colour", "w").writelines(l.replace("(EngineCore_DP0 pid=41)", "\033[0;36m(EngineCore_DP0 pid=41)\033[0;0m") + "\n" for l in log)
open(work + "/markdown", "w").writelines(l.replace("[", "\\[").replace("]", "\\]").replace("_", "\\_") + "\n" for l in log)
P
for form in a.gz a.tar docker cri journal crlf colour markdown; do
    [ "$("$OOMSIGHT" explain --json "$work/$form" | print)" = "$want" ] && echo "$form same" || echo "$form differs"
done
