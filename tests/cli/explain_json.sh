# Every incident follows its schema, and the ledger adds up to what the device had in use.
find ../fixtures/kb -name '*.log' | sort | xargs "$OOMSIGHT" explain --json >"${TMPDIR:-/tmp}/incidents.$$"
python3 ../../tools/check_schema.py ../../data/schema/incident.schema.json <"${TMPDIR:-/tmp}/incidents.$$" && echo "schema holds"
python3 - "${TMPDIR:-/tmp}/incidents.$$" <<'P'
import json, sys
bad = 0
for line in open(sys.argv[1]):
    incident = json.loads(line)
    rows, numbers = incident["ledger"], incident["numbers"]
    if rows and numbers["free_bytes"] is not None:
        bad += sum(row["bytes"] for row in rows) != numbers["total_bytes"] - numbers["free_bytes"]
print(bad, "ledgers do not add up")
P
rm -f "${TMPDIR:-/tmp}/incidents.$$"
