#!/bin/sh
# The pipelines of examples/fleet with the real programs: run.sh BUILD_DIR. Exit 77 when they are not installed.
set -u
here=$(dirname "$0"); binary=$1/cli/oomsight; code=0
for program in promtool prometheus rsyslogd psql; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "not installed: $program (packages rsyslog rsyslog-pgsql postgresql prometheus)"; exit 77; }
done
check() { echo "== $*"; "$@" || code=1; }
check promtool check rules "$here/../../examples/fleet/prometheus/alerts.yml"
check promtool check config "$here/../../examples/fleet/prometheus/prometheus.yml"
check promtool test rules "$here/alerts_test.yml"
check python3 "$here/sinks.py" "$binary"
exit $code
