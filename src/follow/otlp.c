/* Incidents as log records of OpenTelemetry (OTLP/HTTP, JSON encoding), and what a receiver answers. The body of a record is the line itself, so
 * that whoever stores it has all of it; what people filter by is an attribute, with the name of the semantic conventions where there is one. */
#include "base/ascii.h"
#include "follow/follow.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/locale.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEVERITY_ERROR = 17, WAIT_MAX_S = 300, NAME_BYTES = 256 };

/* ---- the request ---- */

static const char *word_of(const json_t *object, const char *key)
{
    const char *text;
    return oos_json_str(object, key, &text) ? text : NULL;
}

/* An attribute; 64 bits are strings in the JSON of protocol buffers, too. */
static void put_attribute(oos_json_writer *w, const char *key, const char *type, const char *value)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "key", key);
    oos_json_field_object(w, "value");
    oos_json_field_str(w, type, value);
    oos_json_end_object(w);
    oos_json_end_object(w);
}

static void put_value(oos_json_writer *w, const char *key, const char *value)
{
    if (value && *value) put_attribute(w, key, "stringValue", value);
}

static void put_number(oos_json_writer *w, const char *key, const json_t *value)
{
    char digits[32];
    if (!json_is_integer(value)) return;
    snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
    put_attribute(w, key, "intValue", digits);
}

static void put_time(oos_json_writer *w, const char *key, const char *text, int64_t otherwise)
{
    char digits[32];
    int64_t const now = oos_logtime_now();
    int64_t time = text ? oos_logtime_read(oos_view_of(text), now) : OOS_TIME_NONE;
    if (time == OOS_TIME_NONE || time < 0) time = otherwise;
    snprintf(digits, sizeof digits, "%lld", (long long)time);
    oos_json_field_str(w, key, digits);
}

static void put_resource(oos_json_writer *w, const json_t *source, const char *host)
{
    static const char *const names[][2] = {{"k8s.namespace.name", "namespace"},
                                           {"k8s.pod.name", "pod"},
                                           {"k8s.pod.uid", "pod_uid"},
                                           {"k8s.container.name", "container"}};
    oos_json_field_object(w, "resource");
    oos_json_field_array(w, "attributes");
    put_value(w, "service.name", "oomsight");
    put_value(w, "service.version", OOMSIGHT_VERSION);
    put_value(w, "host.name", host);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_value(w, names[i][0], word_of(source, names[i][1]));
    put_number(w, "k8s.container.restart_count", json_object_get(source, "restart"));
    oos_json_end_array(w);
    oos_json_end_object(w);
}

/* "...torch.OutOfMemoryError: CUDA out of memory ..." of the line that decides, else of the last. */
static void put_exception(oos_json_writer *w, const json_t *evidence)
{
    const char *best = NULL;
    size_t index;
    json_t *one;
    json_array_foreach(evidence, index, one)
    {
        const char *text = word_of(one, "text"), *colon = text ? strstr(text, "Error: ") : NULL;
        if (colon && (!best || json_is_true(json_object_get(one, "decides")))) best = text;
    }
    if (!best) return;
    const char *const end = strstr(best, "Error: ") + 5, *begin = end;
    while (begin > best && (oos_is_alnum(begin[-1]) || begin[-1] == '.' || begin[-1] == '_')) begin--;
    char type[NAME_BYTES];
    snprintf(type, sizeof type, "%.*s", (int)oos_min((size_t)(end - begin), sizeof type - 1), begin);
    put_value(w, "exception.type", type);
    put_value(w, "exception.message", end + 2);
}

static void put_record(oos_json_writer *w, const json_t *root, const char *line, const json_t *source)
{
    static const char *const names[][2] = {
        {"log.record.uid", "id"},    {"oomsight.fingerprint", "fingerprint"},
        {"oomsight.state", "state"}, {"oomsight.phase", "phase"},
        {"oomsight.cause", "cause"}, {"oomsight.repeats", "repeats"}};
    const json_t *engine = json_object_get(root, "engine");
    int64_t const now = oos_logtime_now();
    oos_json_begin_object(w);
    put_time(w, "timeUnixNano", word_of(root, "at"), 0); /* 0: not known */
    put_time(w, "observedTimeUnixNano", word_of(root, "seen_at"), now);
    oos_json_field_u64(w, "severityNumber", SEVERITY_ERROR);
    oos_json_field_str(w, "severityText", "ERROR");
    oos_json_field_str(w, "eventName", "oomsight.incident");
    oos_json_field_object(w, "body");
    oos_json_field_str(w, "stringValue", line);
    oos_json_end_object(w);
    oos_json_field_array(w, "attributes");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_value(w, names[i][0], word_of(root, names[i][1]));
    put_value(w, "oomsight.engine.name", word_of(engine, "name"));
    put_value(w, "oomsight.engine.version", word_of(engine, "version"));
    put_value(w, "log.file.path", word_of(source, "path"));
    put_number(w, "oomsight.count", json_object_get(root, "count"));
    put_exception(w, json_object_get(root, "evidence"));
    oos_json_end_array(w);
    oos_json_end_object(w);
}

static void put_incident(oos_json_writer *w, const json_t *root, const char *line, const char *host)
{
    const json_t *source = json_object_get(root, "source");
    oos_json_begin_object(w);
    put_resource(w, source, host);
    oos_json_field_array(w, "scopeLogs");
    oos_json_begin_object(w);
    oos_json_field_object(w, "scope");
    oos_json_field_str(w, "name", "oomsight");
    oos_json_field_str(w, "version", OOMSIGHT_VERSION);
    oos_json_end_object(w);
    oos_json_field_array(w, "logRecords");
    put_record(w, root, line, source);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_json_end_array(w);
    oos_json_end_object(w);
}

size_t oos_otlp_request(oos_view lines, oos_text *text)
{
    char host[NAME_BYTES] = "";
    size_t records = 0;
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    oos_json_writer writer = {.text = text, .plain = true}, *w = &writer; /* lines are free of secrets */
    oos_json_begin_object(w);
    oos_json_field_array(w, "resourceLogs");
    while (lines.len) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        oos_view const line = oos_view_slice(lines, 0, end ? (size_t)(end - lines.ptr) : SIZE_MAX);
        lines = oos_view_slice(lines, end ? line.len + 1 : lines.len, SIZE_MAX);
        json_t *root = line.len ? oos_json_parse(line, 0) : NULL;
        char *copy =
            word_of(root, "schema") ? strndup(line.ptr, line.len) : NULL; /* else an acknowledgement */
        if (copy) put_incident(w, root, copy, host);
        records += copy != NULL;
        free(copy);
        json_decref(root);
    }
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_assert(w->depth == 0);
    return records;
}

/* ---- the answer ---- */

/* The value of a header, up to the end of its line; NULL: it is not there. `name` in small letters, with its colon. */
static const char *header_of(const char *head, const char *end, const char *name)
{
    size_t const len = strlen(name);
    for (const char *at = head; (at = memchr(at, '\n', (size_t)(end - at))) && ++at < end;) {
        size_t i = 0;
        while (i < len && at + i < end && oos_lower(at[i]) == name[i]) i++;
        if (i < len) continue;
        for (at += len; at < end && (*at == ' ' || *at == '\t');) at++;
        return at;
    }
    return NULL;
}

static uint64_t number_at(const char *at, const char *end, uint64_t most)
{
    uint64_t number = 0;
    for (; at && at < end && *at >= '0' && *at <= '9' && number < most; at++)
        number = 10 * number + (uint64_t)(*at - '0');
    return oos_min(number, most);
}

/* "rejectedLogRecords": "3" of a partial success. */
static uint64_t rejected_in(const char *at, const char *end)
{
    static const char word[] = "\"rejectedLogRecords\"";
    const char *found = at < end ? memmem(at, (size_t)(end - at), word, sizeof word - 1) : NULL;
    if (!found) return 0;
    for (found += sizeof word - 1; found < end && strchr(": \t\r\n\"", *found) && *found;) found++;
    return number_at(found, end, UINT32_MAX);
}

bool oos_otlp_answer(oos_view text, bool over, oos_otlp_reply *ret_reply)
{
    oos_otlp_reply reply = {0};
    const char *head = text.ptr, *const end = text.ptr + text.len, *body = NULL;
    for (;;) {
        size_t const left = (size_t)(end - head);
        const char *const line = left ? memchr(head, '\n', left) : NULL;
        const char *blank = left ? memmem(head, left, "\r\n\r\n", 4) : NULL;
        bool const is_http = left >= 12 && memcmp(head, "HTTP/1.", 7) == 0 && head[8] == ' ';
        if (!blank || !line || !is_http) {
            *ret_reply = reply;
            return over || (left >= 12 && !is_http);
        }
        reply.status = (unsigned)number_at(head + 9, head + 12, 999);
        body = blank + 4;
        if (reply.status >= 200 || reply.status < 100) break;
        head = body; /* 100 Continue */
        reply.status = 0;
    }
    oos_assert(body > head && body <= end);
    reply.wait_s = (unsigned)number_at(header_of(head, body, "retry-after:"), body, WAIT_MAX_S);
    reply.rejected = rejected_in(body, end);
    const char *length = header_of(head, body, "content-length:");
    bool const whole = length && number_at(length, body, UINT32_MAX) <= (uint64_t)(end - body);
    *ret_reply = reply;
    return over || whole || reply.status == 204 ||
           (!length && end - body >= 5 && memcmp(end - 5, "0\r\n\r\n", 5) == 0);
}
