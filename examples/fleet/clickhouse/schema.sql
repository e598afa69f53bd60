-- Incidents of oomsight in ClickHouse. Lines of `oomsight explain --follow` go into oomsight.lines, one row per line; views take
-- them apart into oomsight.incident, one row per (node, id) once parts are merged (queries say FINAL, so repeats never count).
-- What is no incident goes to oomsight.rejected. Columns are those of examples/fleet/postgresql/schema.sql.
--     clickhouse-client --multiquery < schema.sql && clickhouse-client --multiquery < queries.sql
CREATE DATABASE IF NOT EXISTS oomsight;

CREATE TABLE IF NOT EXISTS oomsight.lines (node String, line String) ENGINE = Null;

CREATE TABLE IF NOT EXISTS oomsight.incident (
    node         LowCardinality(String),
    id           FixedString(16),
    fingerprint  FixedString(16),
    happened_at  DateTime64(3, 'UTC'),
    at           Nullable(DateTime64(3, 'UTC')),
    started_at   Nullable(DateTime64(3, 'UTC')),
    seen_at      DateTime64(3, 'UTC'),
    is_oom       Bool,
    phase        LowCardinality(String),
    cause        LowCardinality(String),
    signature    LowCardinality(String),
    version      LowCardinality(String),
    model        String,
    gpu          LowCardinality(String),
    gpus         UInt32,
    namespace    LowCardinality(String),
    pod          String,
    container    LowCardinality(String),
    path         String,
    occurrences  UInt64,
    fix_levers   Array(LowCardinality(String)),
    fix_changes  Array(String),
    fix_computed Array(Bool),
    document     String CODEC(ZSTD(3))
) ENGINE = ReplacingMergeTree(seen_at)
ORDER BY (node, id)
TTL toDateTime(happened_at) + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS oomsight.rejected (rejected_at DateTime DEFAULT now(), node String, line String)
ENGINE = MergeTree ORDER BY rejected_at TTL rejected_at + INTERVAL 30 DAY;

CREATE MATERIALIZED VIEW IF NOT EXISTS oomsight.take TO oomsight.incident AS
WITH JSONExtractArrayRaw(line, 'fixes') AS fixes,
     arrayMap(fix -> JSONExtract(fix, 'change', 'Array(String)'), fixes) AS changes,
     parseDateTime64BestEffortOrNull(JSONExtractString(line, 'seen_at'), 3, 'UTC') AS seen
SELECT node, JSONExtractString(line, 'id') AS id, JSONExtractString(line, 'fingerprint') AS fingerprint,
       coalesce(at, seen_at) AS happened_at,
       parseDateTime64BestEffortOrNull(JSONExtractString(line, 'at'), 3, 'UTC') AS at,
       parseDateTime64BestEffortOrNull(JSONExtractString(line, 'started_at'), 3, 'UTC') AS started_at,
       assumeNotNull(seen) AS seen_at, JSONExtractBool(line, 'is_oom') AS is_oom, JSONExtractString(line, 'phase') AS phase,
       JSONExtractString(line, 'cause') AS cause, JSONExtractString(line, 'signature') AS signature,
       JSONExtractString(line, 'engine', 'version') AS version, JSONExtractString(line, 'model') AS model,
       JSONExtractString(line, 'gpu', 'name') AS gpu,
       if(JSONExtractUInt(line, 'gpu', 'count') > 0, JSONExtractUInt(line, 'gpu', 'count'),
          greatest(JSONLength(line, 'ranks'), 1)) AS gpus,
       JSONExtractString(line, 'source', 'namespace') AS namespace, JSONExtractString(line, 'source', 'pod') AS pod,
       JSONExtractString(line, 'source', 'container') AS container, JSONExtractString(line, 'source', 'path') AS path,
       greatest(JSONExtractUInt(line, 'count'), 1) AS occurrences,
       arrayMap(words -> arrayStringConcat(
           if(arrayExists(word -> match(word, '^--?[A-Za-z]'), words),
              arrayMap(word -> splitByChar('=', word)[1], arrayFilter(word -> match(word, '^--?[A-Za-z]'), words)),
              words), ' '), changes) AS fix_levers,
       arrayMap(words -> arrayStringConcat(words, ' '), changes) AS fix_changes,
       arrayMap(fix -> JSONExtractString(fix, 'verdict') = 'fits', fixes) AS fix_computed, line AS document
FROM oomsight.lines
WHERE isValidJSON(line) AND JSONExtractString(line, 'schema') = 'oomsight.incident/1'
      AND match(JSONExtractString(line, 'id'), '^[0-9a-f]{16}$') AND match(JSONExtractString(line, 'fingerprint'), '^[0-9a-f]{16}$')
      AND seen IS NOT NULL;

CREATE MATERIALIZED VIEW IF NOT EXISTS oomsight.reject TO oomsight.rejected AS
SELECT node, substring(whole, 1, 4096) AS line FROM (SELECT node, line AS whole FROM oomsight.lines)
WHERE NOT (isValidJSON(whole) AND JSONExtractString(whole, 'schema') = 'oomsight.incident/1'
           AND match(JSONExtractString(whole, 'id'), '^[0-9a-f]{16}$') AND match(JSONExtractString(whole, 'fingerprint'), '^[0-9a-f]{16}$')
           AND parseDateTime64BestEffortOrNull(JSONExtractString(whole, 'seen_at'), 3, 'UTC') IS NOT NULL);
