#!/bin/sh
# A virtual environment for the tests of pipelines, made once outside the checkout: ClickHouse's engine (chdb), a YAML reader,
# Grafana's own types of a dashboard, OpenTelemetry's of a request, Kubernetes' schemas, Go's templates, and DuckDB. Lies beside the engines' (OOMSIGHT_VENVS, default ~/.cache/oomsight/venvs). Exit 77 when it
# cannot be made. With the word `ray`: Ray instead (2.60.0: 285 MB), in OOMSIGHT_RAY, default ~/.cache/oomsight/ray.
set -u
if [ "${1:-}" = ray ]; then
    folder=${OOMSIGHT_RAY:-$HOME/.cache/oomsight/ray}
    [ -x "$folder/bin/ray" ] && exit 0
    mkdir -p "$folder" && python3 -m venv "$folder" && timeout "${OOMSIGHT_VENV_SECONDS:-900}" "$folder/bin/pip" install -q --no-cache-dir ray && exit 0
    echo "ray could not be installed into $folder"; rm -rf "$folder"; exit 77
fi
home=${OOMSIGHT_VENVS:-$HOME/.cache/oomsight/venvs}; folder=$home/fleet
[ -f "$folder/.ready" ] && exit 0
mkdir -p "$home" && rm -rf "$folder" && python3 -m venv "$folder" &&
    timeout "${OOMSIGHT_VENV_SECONDS:-900}" "$folder/bin/pip" install -q --no-cache-dir 'chdb==4.4.0' 'PyYAML>=6,<7' grafana-foundation-sdk opentelemetry-proto 'kubernetes-validate==1.37.0' 'go-template==0.0.3' 'duckdb==2.0.0' &&
    touch "$folder/.ready" && exit 0
echo "chdb could not be installed into $folder"; rm -rf "$folder"; exit 77
