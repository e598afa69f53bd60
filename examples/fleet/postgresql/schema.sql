-- Incidents of oomsight in PostgreSQL 14 or newer. Lines of `oomsight explain --follow` go into the view oomsight.lines, one
-- row per line, by INSERT or COPY; a trigger takes them apart into oomsight.incident, one row per (node, id) however often a
-- line is sent. What is no incident is kept in oomsight.rejected and stops nobody. Queries are in queries.sql.
--     psql -v ON_ERROR_STOP=1 -f schema.sql -f queries.sql
BEGIN;
CREATE SCHEMA IF NOT EXISTS oomsight;

CREATE TABLE IF NOT EXISTS oomsight.incident (
    node         text COLLATE "C" NOT NULL,      -- machine the line came from; '' when there is only one
    id           text COLLATE "C" NOT NULL CHECK (id ~ '^[0-9a-f]{16}$'),
    fingerprint  text COLLATE "C" NOT NULL,      -- equal for equal incidents, wherever they happen
    happened_at  timestamptz NOT NULL,           -- "at", or "seen_at" where the log has no time
    at           timestamptz,
    started_at   timestamptz,
    seen_at      timestamptz NOT NULL,
    is_oom       boolean NOT NULL,
    phase        text COLLATE "C" NOT NULL,
    cause        text COLLATE "C" NOT NULL,
    signature    text COLLATE "C" NOT NULL,      -- this and all text below: '' when unknown
    version      text COLLATE "C" NOT NULL,      -- of the engine
    model        text COLLATE "C" NOT NULL,
    gpu          text COLLATE "C" NOT NULL,
    gpus         integer NOT NULL,               -- gpu.count, or ranks that failed, or 1
    namespace    text COLLATE "C" NOT NULL,
    pod          text COLLATE "C" NOT NULL,
    container    text COLLATE "C" NOT NULL,
    path         text COLLATE "C" NOT NULL,
    occurrences  bigint NOT NULL,                -- "count": equal incidents told in one line
    fix_levers   text[] COLLATE "C" NOT NULL,    -- the flags of each fix, best first, without their values
    fix_changes  text[] COLLATE "C" NOT NULL,    -- each fix as it would be typed
    fix_computed boolean[] NOT NULL,             -- true: planned for this very model and device
    document     jsonb NOT NULL,                 -- the whole line
    PRIMARY KEY (node, id)
);
CREATE INDEX IF NOT EXISTS incident_happened ON oomsight.incident (happened_at);
CREATE INDEX IF NOT EXISTS incident_fingerprint ON oomsight.incident (fingerprint, happened_at);

CREATE TABLE IF NOT EXISTS oomsight.rejected (
    rejected_at timestamptz NOT NULL DEFAULT now(),
    node        text NOT NULL,
    reason      text NOT NULL,
    line        text NOT NULL                    -- its first 4,096 characters
);

-- NUL cannot be stored as text here. An escaped one becomes U+FFFD; "\\u0000" (a backslash, then letters) stays.
CREATE OR REPLACE FUNCTION oomsight.without_nul(line text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN position('\u0000' IN line) = 0 THEN line
                ELSE regexp_replace(line, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END
$$;

-- ["--max-num-seqs", "16"] -> --max-num-seqs. A change without a flag is its own lever.
CREATE OR REPLACE FUNCTION oomsight.lever(change jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(split_part(word, '=', 1), ' ' ORDER BY place) FILTER (WHERE word ~ '^--?[A-Za-z]'),
                    string_agg(word, ' ' ORDER BY place), '')
    FROM jsonb_array_elements_text(change) WITH ORDINALITY AS words (word, place)
$$;

CREATE OR REPLACE FUNCTION oomsight.change(change jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(word, ' ' ORDER BY place), '')
    FROM jsonb_array_elements_text(change) WITH ORDINALITY AS words (word, place)
$$;

-- Whoever may insert into oomsight.lines needs no right to the tables: the function runs as its owner, on a fixed path.
CREATE OR REPLACE FUNCTION oomsight.take() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    d jsonb;
BEGIN
    BEGIN
        d := oomsight.without_nul(NEW.line)::jsonb;
        IF d ->> 'schema' IS DISTINCT FROM 'oomsight.incident/1' THEN
            RAISE EXCEPTION 'not oomsight.incident/1';
        END IF;
        INSERT INTO oomsight.incident AS kept
        SELECT coalesce(NEW.node, ''), d ->> 'id', d ->> 'fingerprint',
               coalesce((d ->> 'at')::timestamptz, (d ->> 'seen_at')::timestamptz), (d ->> 'at')::timestamptz,
               (d ->> 'started_at')::timestamptz, (d ->> 'seen_at')::timestamptz, (d ->> 'is_oom')::boolean, d ->> 'phase',
               d ->> 'cause', coalesce(d ->> 'signature', ''), coalesce(d #>> '{engine,version}', ''),
               coalesce(d ->> 'model', ''), coalesce(d #>> '{gpu,name}', ''),
               coalesce((d #>> '{gpu,count}')::integer, greatest(jsonb_array_length(d -> 'ranks'), 1)),
               coalesce(d #>> '{source,namespace}', ''), coalesce(d #>> '{source,pod}', ''),
               coalesce(d #>> '{source,container}', ''), coalesce(d #>> '{source,path}', ''),
               coalesce((d ->> 'count')::bigint, 1), fixes.levers, fixes.changes, fixes.computed, d
        FROM (SELECT coalesce(array_agg(oomsight.lever(fix -> 'change') ORDER BY place), '{}') AS levers,
                     coalesce(array_agg(oomsight.change(fix -> 'change') ORDER BY place), '{}') AS changes,
                     coalesce(array_agg(fix ->> 'verdict' IS NOT DISTINCT FROM 'fits' ORDER BY place), '{}') AS computed
              FROM jsonb_array_elements(d -> 'fixes') WITH ORDINALITY AS all_fixes (fix, place)) AS fixes
        ON CONFLICT (node, id) DO UPDATE SET
            fingerprint = excluded.fingerprint, happened_at = excluded.happened_at, at = excluded.at,
            started_at = excluded.started_at, seen_at = excluded.seen_at, is_oom = excluded.is_oom, phase = excluded.phase,
            cause = excluded.cause, signature = excluded.signature, version = excluded.version, model = excluded.model,
            gpu = excluded.gpu, gpus = excluded.gpus, namespace = excluded.namespace, pod = excluded.pod,
            container = excluded.container, path = excluded.path, occurrences = excluded.occurrences,
            fix_levers = excluded.fix_levers, fix_changes = excluded.fix_changes, fix_computed = excluded.fix_computed,
            document = excluded.document
        WHERE excluded.seen_at > kept.seen_at; -- the same incident told again may tell more; never less
    -- Only faults of the line itself: a full disk or a lost connection must reach the sender, who then sends again.
    EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded OR raise_exception THEN
        INSERT INTO oomsight.rejected (node, reason, line)
        VALUES (coalesce(NEW.node, ''), left(SQLERRM, 500), left(coalesce(NEW.line, ''), 4096));
    END;
    RETURN NULL;
END
$$;

CREATE OR REPLACE VIEW oomsight.lines AS SELECT ''::text AS node, ''::text AS line WHERE false;
CREATE OR REPLACE TRIGGER take INSTEAD OF INSERT ON oomsight.lines FOR EACH ROW EXECUTE FUNCTION oomsight.take();

-- Two roles to grant to accounts: one for the pipeline, which may hand in lines and nothing else, one for people and Grafana.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'oomsight_writer') THEN CREATE ROLE oomsight_writer NOLOGIN; END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'oomsight_reader') THEN CREATE ROLE oomsight_reader NOLOGIN; END IF;
END
$$;
GRANT USAGE ON SCHEMA oomsight TO oomsight_writer, oomsight_reader;
GRANT INSERT ON oomsight.lines TO oomsight_writer;
GRANT SELECT ON oomsight.incident, oomsight.rejected TO oomsight_reader;
COMMIT;
