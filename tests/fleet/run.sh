#!/bin/sh
# The pipelines of examples/fleet with the real programs: run.sh BUILD_DIR. Exit 77 when they are not installed.
set -u
here=$(dirname "$0"); binary=$1/cli/oomsight; code=0
for program in promtool prometheus rsyslogd psql; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "not installed: $program (packages rsyslog postgresql prometheus)"; exit 77; }
done
check() { echo "== $*"; "$@"; case $? in 0 | 77) ;; *) code=1 ;; esac; }
check promtool check rules "$here/../../examples/fleet/prometheus/alerts.yml"
check promtool check config "$here/../../examples/fleet/prometheus/prometheus.yml"
check promtool test rules "$here/alerts_test.yml"
check python3 "$here/../../tools/scale.py" --check "$here/../../docs/evidence/scale.md"
check python3 "$here/sinks.py" "$binary"
check python3 "$here/end_to_end.py" "$binary"
check python3 "$here/fluent_bit.py" "$binary"
check python3 "$here/thousand.py" "$binary" --processes 40
python=${OOMSIGHT_VENVS:-$HOME/.cache/oomsight/venvs}/fleet/bin/python
if [ -x "$python" ]; then check "$python" "$here/configs.py"; check "$python" "$here/kubernetes.py"; check "$python" "$here/duck.py" "$binary"; check "$python" "$here/../explain/otlp.py" "$binary"; else echo "no environment of tools/fleet_venv.sh: configurations and requests of OpenTelemetry were not read"; fi
exit $code
