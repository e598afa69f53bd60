-- A small site needs no store: DuckDB reads the follower's file, and what logrotate made of it, each time it is asked.
--   cd /var/lib/oomsight && duckdb -init /usr/share/oomsight/duckdb/queries.sql -c 'FROM top_fingerprints LIMIT 10'
-- Times are UTC. A repeated line has the id of the one before it: the one that counts most is taken.

CREATE OR REPLACE VIEW incident AS
SELECT * EXCLUDE ("at", seen_at), coalesce("at", seen_at)::TIMESTAMP AS happened_at
FROM read_json('incidents.ndjson*', format = 'newline_delimited', ignore_errors = true, maximum_object_size = 16777216,
               columns = {id: 'VARCHAR', fingerprint: 'VARCHAR', is_oom: 'BOOLEAN', phase: 'VARCHAR', cause: 'VARCHAR', count: 'BIGINT', "at": 'VARCHAR',
                          seen_at: 'VARCHAR', engine: 'STRUCT(name VARCHAR, version VARCHAR)',
                          source: 'STRUCT(path VARCHAR, namespace VARCHAR, pod VARCHAR, container VARCHAR)'})
WHERE id IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY id ORDER BY count DESC) = 1;

CREATE OR REPLACE VIEW top_fingerprints AS
SELECT fingerprint, min(phase) AS phase, min(cause) AS cause, sum(count)::BIGINT AS incidents, count(DISTINCT source) AS engines,
       count(DISTINCT engine.version) AS versions, min(happened_at) AS first_at, max(happened_at) AS last_at
FROM incident WHERE is_oom GROUP BY fingerprint ORDER BY incidents DESC, fingerprint;

CREATE OR REPLACE VIEW first_seen AS
SELECT fingerprint, arg_min(phase, happened_at) AS phase, arg_min(cause, happened_at) AS cause, min(happened_at) AS first_at,
       arg_min(engine.version, happened_at) AS version, arg_min(source.path, happened_at) AS path
FROM incident WHERE is_oom GROUP BY fingerprint ORDER BY first_at DESC, fingerprint;
