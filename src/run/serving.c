#include "run/run.h"
#include "base/locale.h"
#include "facts/facts.h"

#include <string.h>

typedef enum figure { RUNNING, WAITING, KV_USED } figure;

#define REQUESTS_MAX 1e9 /* more is no number of requests, and then nothing of it is believed */

/* Behind the labels, whose words may be anything; false: no number that could be meant. */
static bool value_of(oos_view line, size_t name_len, double *ret_value)
{
    const char *brace =
        line.ptr[name_len] == '{' ? memrchr(line.ptr, '}', line.len) : line.ptr + name_len - 1;
    char number[32], *end;
    if (!brace) return false;
    size_t const at = (size_t)(brace + 1 - line.ptr), len = line.len - at;
    size_t const kept = len < sizeof number ? len : sizeof number - 1;
    memcpy(number, line.ptr + at, kept);
    number[kept] = '\0';
    *ret_value = oos_real_read(number, &end);
    return end != number && *ret_value >= 0 && *ret_value <= 2 * REQUESTS_MAX;
}

static void take(figure what, double value, oos_serving *serving)
{
    if (what == KV_USED) {
        if (value > 1) return;
        if (!serving->kv_known || value > serving->kv_used) serving->kv_used = value;
        serving->kv_known = true;
        return;
    }
    uint64_t *sum = what == RUNNING ? &serving->running : &serving->waiting;
    *sum = *sum > (uint64_t)REQUESTS_MAX ? *sum : *sum + (uint64_t)value;
    serving->requests_known = true;
}

/* A name ends before its labels or the value. */
static bool is_named(oos_view line, const char *name)
{
    size_t const len = strlen(name);
    return line.len > len && memcmp(line.ptr, name, len) == 0 &&
           (line.ptr[len] == '{' || line.ptr[len] == ' ');
}

static void line_read(oos_view line, oos_serving *serving)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        const oos_engine_words *engine = oos_engine_list[i];
        const char *const names[] = {
            [RUNNING] = engine->running, [WAITING] = engine->waiting, [KV_USED] = engine->kv_used};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            double value;
            if (!names[k] || !is_named(line, names[k])) continue;
            if (value_of(line, strlen(names[k]), &value)) take((figure)k, value, serving);
            return;
        }
    }
}

bool oos_serving_read(oos_view metrics, oos_serving *ret_serving)
{
    *ret_serving = (oos_serving){0};
    for (size_t at = 0; at < metrics.len;) {
        const char *start = metrics.ptr + at, *end = memchr(start, '\n', metrics.len - at);
        size_t const len = end ? (size_t)(end - start) : metrics.len - at;
        line_read((oos_view){start, len}, ret_serving);
        at += len + 1;
    }
    if (ret_serving->running > (uint64_t)REQUESTS_MAX || ret_serving->waiting > (uint64_t)REQUESTS_MAX) {
        ret_serving->requests_known = false;
        ret_serving->running = ret_serving->waiting = 0;
    }
    return ret_serving->requests_known || ret_serving->kv_known;
}
