-- The questions of a fleet, as functions of a span of time: SELECT * FROM oomsight.top_fingerprints(now() - interval '30 days', now()).
-- examples/fleet/clickhouse/queries.sql asks the same and answers the same; a test compares them.
BEGIN;

-- GPU-milliseconds an incident cost. Assumed: an engine that fails before it serves has held all its GPUs for nothing from its
-- first line to its failure; one that fails while serving has lost nothing before (its restart is not counted: no log tells it).
CREATE OR REPLACE FUNCTION oomsight.held_ms(i oomsight.incident) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(i.gpus * greatest(floor(extract(epoch FROM i.at - i.started_at) * 1000), 0)::bigint, 0)
$$;
CREATE OR REPLACE FUNCTION oomsight.is_startup(phase text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT phase NOT LIKE 'runtime\_%' AND phase <> 'sleep_wake'
$$;

-- Which are the same, how often, where.
CREATE OR REPLACE FUNCTION oomsight.top_fingerprints(since timestamptz, until timestamptz)
RETURNS TABLE (fingerprint text, phase text, cause text, signature text, incidents bigint, engines bigint, namespaces bigint,
               versions bigint, first_at timestamptz, last_at timestamptz, gpu_hours_lost double precision)
LANGUAGE sql STABLE AS $$
    SELECT i.fingerprint, min(i.phase), min(i.cause), min(i.signature), sum(i.occurrences)::bigint,
           count(DISTINCT (i.node, i.namespace, i.pod, i.container, CASE i.pod WHEN '' THEN i.path ELSE '' END)), count(DISTINCT i.namespace), count(DISTINCT i.version),
           min(i.happened_at), max(i.happened_at),
           coalesce(sum(oomsight.held_ms(i)) FILTER (WHERE oomsight.is_startup(i.phase)), 0)::double precision / 3600000
    FROM oomsight.incident AS i
    WHERE i.is_oom AND i.happened_at >= since AND i.happened_at < until
    GROUP BY i.fingerprint
    ORDER BY 5 DESC, 1
$$;

-- When did each appear, with which engine version, and which version did the same workload (namespace and container) run
-- before? previous_version '' : none is known, so the version is not to blame on this evidence.
CREATE OR REPLACE FUNCTION oomsight.first_seen(since timestamptz, until timestamptz)
RETURNS TABLE (fingerprint text, phase text, cause text, first_at timestamptz, version text, previous_version text,
               namespace text, container text, incidents bigint)
LANGUAGE sql STABLE AS $$
    WITH first AS (
        SELECT DISTINCT ON (i.fingerprint) i.* FROM oomsight.incident AS i
        WHERE i.is_oom AND i.version <> '' ORDER BY i.fingerprint, i.happened_at, i.node, i.id)
    SELECT f.fingerprint, f.phase, f.cause, f.happened_at, f.version, coalesce(before.version, ''), f.namespace, f.container,
           (SELECT sum(o.occurrences)::bigint FROM oomsight.incident AS o WHERE o.is_oom AND o.fingerprint = f.fingerprint)
    FROM first AS f LEFT JOIN LATERAL (
        SELECT b.version FROM oomsight.incident AS b
        WHERE b.namespace = f.namespace AND b.container = f.container AND b.happened_at < f.happened_at
              AND b.version <> '' AND b.version <> f.version
        ORDER BY b.happened_at DESC, b.node DESC, b.id DESC LIMIT 1) AS before ON true
    WHERE f.happened_at >= since AND f.happened_at < until
    ORDER BY f.happened_at DESC, f.fingerprint
$$;

-- What it cost, by namespace and cause. `timed` incidents have both times; the others count as nothing, so this is a lower bound.
CREATE OR REPLACE FUNCTION oomsight.gpu_hours_lost(since timestamptz, until timestamptz)
RETURNS TABLE (namespace text, cause text, incidents bigint, timed bigint, gpu_hours_lost double precision,
               gpu_hours_before_runtime_failures double precision)
LANGUAGE sql STABLE AS $$
    SELECT i.namespace, i.cause, sum(i.occurrences)::bigint,
           count(*) FILTER (WHERE i.at IS NOT NULL AND i.started_at IS NOT NULL),
           coalesce(sum(oomsight.held_ms(i)) FILTER (WHERE oomsight.is_startup(i.phase)), 0)::double precision / 3600000,
           coalesce(sum(oomsight.held_ms(i)) FILTER (WHERE NOT oomsight.is_startup(i.phase)), 0)::double precision / 3600000
    FROM oomsight.incident AS i
    WHERE i.is_oom AND i.happened_at >= since AND i.happened_at < until
    GROUP BY i.namespace, i.cause
    ORDER BY 5 DESC, 3 DESC, 1, 2
$$;

-- Which change would have mended most. A lever is counted once per incident that lists it; `best` where it is the first listed,
-- `computed` where it was planned for that very model and device, `only` where nothing else is listed.
CREATE OR REPLACE FUNCTION oomsight.fixes_by_effect(since timestamptz, until timestamptz)
RETURNS TABLE (lever text, incidents bigint, share double precision, best bigint, computed bigint, "only" bigint, engines bigint,
               gpu_hours_lost double precision, usual_change text)
LANGUAGE sql STABLE AS $$
    WITH chosen AS (
        SELECT i.*, CASE WHEN oomsight.is_startup(i.phase) THEN oomsight.held_ms(i) ELSE 0 END AS lost_ms
        FROM oomsight.incident AS i WHERE i.is_oom AND i.happened_at >= since AND i.happened_at < until),
    listed AS (
        SELECT c.node, c.id, f.lever, min(f.place) AS place, bool_or(f.computed) AS computed,
               (array_agg(f.change ORDER BY f.place))[1] AS change
        FROM chosen AS c, unnest(c.fix_levers, c.fix_changes, c.fix_computed) WITH ORDINALITY AS f (lever, change, computed, place)
        GROUP BY c.node, c.id, f.lever),
    usual AS (
        SELECT DISTINCT ON (l.lever) l.lever, l.change FROM listed AS l
        GROUP BY l.lever, l.change ORDER BY l.lever, count(*) DESC, l.change)
    SELECT l.lever, sum(c.occurrences)::bigint,
           sum(c.occurrences)::double precision / (SELECT sum(a.occurrences) FROM chosen AS a)::double precision,
           coalesce(sum(c.occurrences) FILTER (WHERE l.place = 1), 0)::bigint,
           coalesce(sum(c.occurrences) FILTER (WHERE l.computed), 0)::bigint,
           coalesce(sum(c.occurrences) FILTER (WHERE cardinality(c.fix_levers) = 1), 0)::bigint,
           count(DISTINCT (c.node, c.namespace, c.pod, c.container, CASE c.pod WHEN '' THEN c.path ELSE '' END)),
           sum(c.lost_ms)::double precision / 3600000, min(u.change)
    FROM listed AS l JOIN chosen AS c USING (node, id) JOIN usual AS u USING (lever)
    GROUP BY l.lever
    ORDER BY 2 DESC, 8 DESC, 1
$$;

-- Functions run with the rights of who calls them.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA oomsight TO oomsight_reader;
COMMIT;
