# Which flag for which phase: what helps and what does not, in the order of a start, within 100 columns, in two languages, and the same as JSON.
"$OOMSIGHT" kb phases kv_sizing --engine sglang --lang en
"$OOMSIGHT" kb phases cudagraph_profile --lang zh
"$OOMSIGHT" kb phases distributed_init --engine vllm
for language in en zh; do "$OOMSIGHT" kb phases --lang $language | grep -oE '\[[a-z_]+\]$' | tr '\n' ' '; echo; done
"$OOMSIGHT" kb phases | awk 'length > 100 { print "too wide: " $0 }'
"$OOMSIGHT" kb phases --json | python3 ../../tools/check_schema.py ../../data/schema/phases.schema.json && echo "the schema holds"
# In a phase each lever of a ladder helps or has no effect as its data says, and none does both.
"$OOMSIGHT" kb phases --json | python3 -c '
import json, sys
for phase in json.load(sys.stdin)["phases"]:
    for engine in phase["engines"]:
        levers = json.load(open("../../data/engines/%s/levers.json" % engine["engine"]))["levers"]
        helps = [lever["id"] for lever in levers if phase["phase"] in lever["phases"]]
        useless = {lever["id"] for lever in levers if phase["phase"] in lever.get("useless", {}).get("phases", [])}
        if helps != [row["id"] for row in engine["helps"]]: print(phase["phase"], engine["engine"], "helps differs")
        if not {row["id"] for row in engine["no_effect"]} <= useless: print(phase["phase"], engine["engine"], "no_effect differs")
        both = {row["change"] for row in engine["helps"]} & {row["change"] for row in engine["no_effect"]}
        if both: print(phase["phase"], engine["engine"], "both:", *both)'
"$OOMSIGHT" kb phases nowhere; echo "exit $?"
"$OOMSIGHT" kb phases --engine none; echo "exit $?"
"$OOMSIGHT" kb list --engine vllm; echo "exit $?"
