-- Lines that came through the OpenTelemetry collector's ClickHouse exporter (table otel.otel_logs), on to oomsight.lines.
CREATE MATERIALIZED VIEW IF NOT EXISTS otel.oomsight_lines TO oomsight.lines AS
SELECT ResourceAttributes['host.name'] AS node, Body AS line FROM otel.otel_logs WHERE ServiceName = 'oomsight';
