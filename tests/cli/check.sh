# Every kind of deployment file, and files that hold no command. Figures of plans are others' business and are cut off.
cd ../fixtures || exit
try() { out=$("$OOMSIGHT" check "$@"); code=$?; }
try --offline --models models --gpu 4090 --vllm 0.32.0 deploy/*; echo "$out" | grep -v '^    [A-Zab0-9].*[^-]$' | grep -E '^deploy|^    on |commands in'; echo "exit $code"
echo "$out" | grep --no-group-separator -A1 -E '^    (Dockerfile|container|Helm|shell|systemd)' | grep -vE '^    (One|The|Weights)'
try --offline --models models --gpu 4090 --format github deploy/compose.yaml deploy/serve.sh; echo "$out" | sed -E 's/(vLLM [0-9.]+)\. .*/\1/'; echo "exit $code"
try --offline --models models --gpu 4090 --format sarif deploy/production-stack-values.yaml; echo "$out" | grep -oE '"(ruleId|level|uri)": "[^"]*"|"startLine": [0-9]*'; echo "exit $code"
try --offline --models models --gpu 4090 --json deploy/vllm.service; echo "$out"; echo "exit $code"
echo "$out" | python3 ../../tools/check_schema.py ../../data/schema/check.schema.json && echo "the schema holds"
# the page has no script, and the worst first
try --offline --models models --gpu 4090 --format html deploy; echo "$out" | grep -c '<script'; echo "$out" | grep -oE '<h1>[^<]*|pill (bad|warn|none|good)\"' | uniq -c; echo "exit $code"
export HF_HOME=/nowhere
try --offline --gpu 4090 deploy-unrelated/*; echo "$out"; echo "exit $code"
try --gpu 4090 /no/such/file; echo "exit $code"
try; echo "exit $code"
