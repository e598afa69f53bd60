# Every engine with the releases that are known of it.
"$OOMSIGHT" engines | grep -oE '^[a-z]+ |^A .*'
"$OOMSIGHT" engines --json | python3 -c 'import json, sys; print([e["title"] for e in json.load(sys.stdin)["engines"] if e["versions"]])'
