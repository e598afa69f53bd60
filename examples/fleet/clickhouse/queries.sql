-- The questions of a fleet, as views with two parameters: SELECT * FROM oomsight.top_fingerprints(since = '2026-11-01', until = '2026-12-01').
-- They answer what examples/fleet/postgresql/queries.sql answers, column for column; what is assumed is said there.

-- Incidents once each, with what they cost in GPU-milliseconds before a failure at start, or while serving.
CREATE OR REPLACE VIEW oomsight.counted AS
SELECT *, phase NOT LIKE 'runtime\_%' AND phase != 'sleep_wake' AS is_startup,
       gpus * toUInt64(greatest(ifNull(dateDiff('millisecond', started_at, at), 0), 0)) AS held_ms
FROM oomsight.incident FINAL WHERE is_oom;

CREATE OR REPLACE VIEW oomsight.top_fingerprints AS
SELECT fingerprint, min(i.phase) AS phase, min(i.cause) AS cause, min(i.signature) AS signature, sum(occurrences) AS incidents,
       uniqExact(node, namespace, pod, container, if(pod = '', path, '')) AS engines, uniqExact(namespace) AS namespaces, uniqExact(version) AS versions,
       min(happened_at) AS first_at, max(happened_at) AS last_at, sumIf(held_ms, is_startup) / 3600000 AS gpu_hours_lost
FROM oomsight.counted AS i
WHERE happened_at >= {since:DateTime64(3, 'UTC')} AND happened_at < {until:DateTime64(3, 'UTC')}
GROUP BY fingerprint
ORDER BY incidents DESC, fingerprint;

CREATE OR REPLACE VIEW oomsight.first_seen AS
WITH first AS (
    SELECT fingerprint, argMin((phase, cause, version, namespace, container), (happened_at, node, id)) AS what,
           min(happened_at) AS first_at
    FROM oomsight.counted WHERE version != '' GROUP BY fingerprint),
totals AS (SELECT fingerprint, sum(occurrences) AS incidents FROM oomsight.counted GROUP BY fingerprint),
span AS (
    SELECT fingerprint, what.1 AS phase, what.2 AS cause, first_at, what.3 AS version, what.4 AS namespace, what.5 AS container
    FROM first WHERE first_at >= {since:DateTime64(3, 'UTC')} AND first_at < {until:DateTime64(3, 'UTC')})
SELECT f.fingerprint AS fingerprint, f.phase AS phase, f.cause AS cause, f.first_at AS first_at, f.version AS version,
       argMaxIf(b.version, (b.happened_at, b.node, b.id), b.happened_at < f.first_at AND b.version != '' AND b.version != f.version)
           AS previous_version,
       f.namespace AS namespace, f.container AS container, any(t.incidents) AS incidents
FROM span AS f
LEFT JOIN (SELECT namespace, container, version, happened_at, node, id FROM oomsight.incident FINAL) AS b
    ON b.namespace = f.namespace AND b.container = f.container
JOIN totals AS t ON t.fingerprint = f.fingerprint
GROUP BY fingerprint, phase, cause, first_at, version, namespace, container
ORDER BY first_at DESC, fingerprint;

CREATE OR REPLACE VIEW oomsight.gpu_hours_lost AS
SELECT namespace, cause, sum(occurrences) AS incidents, countIf(at IS NOT NULL AND started_at IS NOT NULL) AS timed,
       sumIf(held_ms, is_startup) / 3600000 AS gpu_hours_lost,
       sumIf(held_ms, NOT is_startup) / 3600000 AS gpu_hours_before_runtime_failures
FROM oomsight.counted
WHERE happened_at >= {since:DateTime64(3, 'UTC')} AND happened_at < {until:DateTime64(3, 'UTC')}
GROUP BY namespace, cause
ORDER BY gpu_hours_lost DESC, incidents DESC, namespace, cause;

CREATE OR REPLACE VIEW oomsight.fixes_by_effect AS
WITH chosen AS (
    SELECT *, if(is_startup, held_ms, 0) AS lost_ms FROM oomsight.counted
    WHERE happened_at >= {since:DateTime64(3, 'UTC')} AND happened_at < {until:DateTime64(3, 'UTC')}),
listed AS (
    SELECT node, id, lever, min(place) AS first_place, max(computed) AS was_computed, argMin(change, place) AS first_change,
           any(occurrences) AS times, any(lost_ms) AS lost, any(length(fix_levers)) AS listed_fixes,
           any((node, namespace, pod, container, if(pod = '', path, ''))) AS engine
    FROM chosen ARRAY JOIN fix_levers AS lever, fix_changes AS change, fix_computed AS computed, arrayEnumerate(fix_levers) AS place
    GROUP BY node, id, lever),
usual AS (
    SELECT lever, argMin(first_change, (-times, first_change)) AS usual_change
    FROM (SELECT lever, first_change, toInt64(count()) AS times FROM listed GROUP BY lever, first_change) GROUP BY lever)
SELECT l.lever AS lever, sum(l.times) AS incidents, incidents / (SELECT sum(occurrences) FROM chosen) AS share,
       sumIf(l.times, l.first_place = 1) AS best, sumIf(l.times, l.was_computed) AS computed,
       sumIf(l.times, l.listed_fixes = 1) AS only, uniqExact(l.engine) AS engines, sum(l.lost) / 3600000 AS gpu_hours_lost,
       any(u.usual_change) AS usual_change
FROM listed AS l JOIN usual AS u ON u.lever = l.lever
GROUP BY lever
ORDER BY incidents DESC, gpu_hours_lost DESC, lever;
