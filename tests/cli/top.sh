# the run that this is asked in, among whatever else runs on the machine
"$OOMSIGHT" run --quiet --unified 1234MiB -- sh -c '"$OOMSIGHT" top --json' | python3 -c '
import json, sys
runs = [entry["run"] for entry in json.load(sys.stdin) if entry["run"]["reserve_bytes"] == 1234 << 20]
print(len(runs) > 0, *sorted(runs[0]))'
"$OOMSIGHT" top --every 0
"$OOMSIGHT" top --what
