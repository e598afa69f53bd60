/* Parsing by hand: strptime() knows no fractions, and this runs for every line that is followed. */
#include "log/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define SECOND ((int64_t)1000000000)

/* `count` digits at *at as a number; -1: there are not so many. */
static int digits(oos_view text, size_t *at, int count)
{
    int value = 0;
    if (text.len < (size_t)count || *at > text.len - (size_t)count) return -1;
    for (int i = 0; i < count; i++) {
        char const c = text.ptr[*at + (size_t)i];
        if (c < '0' || c > '9') return -1;
        value = value * 10 + (c - '0');
    }
    *at += (size_t)count;
    return value;
}

static bool one_of(oos_view text, size_t *at, const char *set)
{
    if (*at >= text.len || !text.ptr[*at] || !strchr(set, text.ptr[*at])) return false;
    ++*at;
    return true;
}

/* Days since 1970 of a date of the Gregorian calendar (years from March, so that the leap day comes last). */
static int64_t days_of(int year, int month, int day)
{
    int64_t const y = month <= 2 ? year - 1 : year, era = y / 400, of_era = y - era * 400;
    int64_t const of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t seconds_of(int year, int month, int day, int hour, int minute, int second)
{
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
        return INT64_MIN;
    return ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
}

static bool read_clock(oos_view text, size_t *at, int clock[3])
{
    for (int i = 0; i < 3; i++) {
        if (i && !one_of(text, at, ":")) return false;
        clock[i] = digits(text, at, 2);
        if (clock[i] < 0) return false;
    }
    return true;
}

/* `.123456789` or `,123`: nanoseconds. */
static int64_t read_fraction(oos_view text, size_t *at)
{
    int64_t nanos = 0, unit = SECOND / 10;
    if (!one_of(text, at, ".,")) return 0;
    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9') {
        nanos += unit * (text.ptr[*at] - '0');
        unit /= 10;
        ++*at;
    }
    return nanos;
}

/* `+02:00`, `-0700`: seconds east of Greenwich. */
static int64_t read_zone(oos_view text, size_t *at)
{
    if (*at >= text.len || (text.ptr[*at] != '+' && text.ptr[*at] != '-')) return 0;
    int const sign = text.ptr[(*at)++] == '-' ? -1 : 1;
    int const hours = digits(text, at, 2);
    one_of(text, at, ":");
    int const minutes = digits(text, at, 2);
    return hours < 0 || hours > 14 || minutes < 0 ? 0 : sign * (hours * 60 + minutes) * 60;
}

/* `2025-01-01T00:00:00.5Z`, `2025-04-23 11:34:24,537` */
static int64_t full_time(oos_view text)
{
    size_t at = 0;
    int clock[3];
    int const year = digits(text, &at, 4);
    if (year < 1970 || !one_of(text, &at, "-/")) return OOS_TIME_NONE;
    int const month = digits(text, &at, 2);
    if (month < 0 || !one_of(text, &at, "-/")) return OOS_TIME_NONE;
    int const day = digits(text, &at, 2);
    if (day < 0 || !one_of(text, &at, "T ") || !read_clock(text, &at, clock)) return OOS_TIME_NONE;
    int64_t const nanos = read_fraction(text, &at);
    int64_t const seconds = seconds_of(year, month, day, clock[0], clock[1], clock[2]);
    if (seconds == INT64_MIN || year > 2200) return OOS_TIME_NONE;
    return (seconds - read_zone(text, &at)) * SECOND + nanos;
}

static int64_t with_year(int month, int day, const int clock[3], int64_t now)
{
    time_t const seconds = (time_t)(now / SECOND);
    struct tm today;
    if (now == OOS_TIME_NONE || !gmtime_r(&seconds, &today)) return OOS_TIME_NONE;
    for (int year = today.tm_year + 1901; year >= today.tm_year + 1899; year--) {
        int64_t const then = seconds_of(year, month, day, clock[0], clock[1], clock[2]);
        if (then == INT64_MIN) return OOS_TIME_NONE;
        if (then <= seconds + 2 * 86400) return then * SECOND;
    }
    return OOS_TIME_NONE;
}

/* `11-19 20:16:36` of vLLM */
static int64_t short_time(oos_view text, int64_t now)
{
    size_t at = 0;
    int clock[3];
    int const month = digits(text, &at, 2);
    if (month < 1 || !one_of(text, &at, "-")) return OOS_TIME_NONE;
    int const day = digits(text, &at, 2);
    if (day < 1 || !one_of(text, &at, " ") || !read_clock(text, &at, clock)) return OOS_TIME_NONE;
    return with_year(month, day, clock, now);
}

/* `Nov 15 08:13:00` of syslog and journalctl */
static int64_t month_time(oos_view text, int64_t now)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    size_t at = 4;
    int clock[3], month = 0;
    if (text.len < 15 || text.ptr[3] != ' ') return OOS_TIME_NONE;
    for (int i = 0; i < 12; i++)
        if (memcmp(text.ptr, months + i * 3, 3) == 0) month = i + 1;
    if (!month) return OOS_TIME_NONE;
    bool const padded = one_of(text, &at, " ");
    int const day = digits(text, &at, padded ? 1 : 2);
    if (day < 1 || !one_of(text, &at, " ") || !read_clock(text, &at, clock)) return OOS_TIME_NONE;
    return with_year(month, day, clock, now);
}

static int64_t time_at(oos_view text, int64_t now)
{
    if (text.len < 14) return OOS_TIME_NONE;
    char const first = text.ptr[0];
    if (first >= '0' && first <= '9') {
        int64_t const full = full_time(text);
        return full != OOS_TIME_NONE ? full : short_time(text, now);
    }
    return first >= 'A' && first <= 'Z' ? month_time(text, now) : OOS_TIME_NONE;
}

/* A number of seconds, milli-, micro- or nanoseconds since 1970: its size tells which. */
static int64_t epoch_time(oos_view text)
{
    int64_t value = 0;
    size_t at = 0;
    for (; at < text.len && at < 19 && text.ptr[at] >= '0' && text.ptr[at] <= '9'; at++)
        value = value * 10 + (text.ptr[at] - '0');
    if (at == 10) return value * SECOND + read_fraction(text, &at);
    return at == 13 ? value * (SECOND / 1000) : at == 16 ? value * 1000 : at == 19 ? value : OOS_TIME_NONE;
}

static int64_t json_time(oos_view line, int64_t now)
{
    static const char *const keys[] = {
        "\"time\":", "\"__REALTIME_TIMESTAMP\":", "\"timestamp\":", "\"@timestamp\":", "\"asctime\":",
        "\"ts\":"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t const len = strlen(keys[i]);
        const char *key = memmem(line.ptr, line.len, keys[i], len);
        if (!key) continue;
        oos_view value = oos_view_slice(line, (size_t)(key - line.ptr) + len, SIZE_MAX);
        while (value.len && (value.ptr[0] == ' ' || value.ptr[0] == '"'))
            value = oos_view_slice(value, 1, SIZE_MAX);
        int64_t const found = time_at(value, now);
        if (found != OOS_TIME_NONE) return found;
        int64_t const epoch = epoch_time(value);
        if (epoch != OOS_TIME_NONE) return epoch;
    }
    return OOS_TIME_NONE;
}

int64_t oos_logtime_read(oos_view line, int64_t now)
{
    enum { WORDS = 4, PREFIX_MAX = 160 };
    if (line.len && line.ptr[0] == '{') return json_time(line, now);
    line = oos_view_slice(line, 0, PREFIX_MAX);
    for (int word = 0; word < WORDS; word++) {
        while (line.len && strchr(" [\t", line.ptr[0]) && line.ptr[0])
            line = oos_view_slice(line, 1, SIZE_MAX);
        int64_t const found = time_at(line, now);
        if (found != OOS_TIME_NONE || !line.len) return found;
        /* Past `(EngineCore_DP0 pid=12)`, `INFO`, `ERROR:`. */
        bool const process = line.ptr[0] == '(';
        if (!process && !(line.ptr[0] >= 'A' && line.ptr[0] <= 'Z')) return OOS_TIME_NONE;
        const char *end = memchr(line.ptr, process ? ')' : ' ', line.len);
        if (!end) return OOS_TIME_NONE;
        line = oos_view_slice(line, (size_t)(end - line.ptr) + 1, SIZE_MAX);
    }
    return OOS_TIME_NONE;
}

int64_t oos_logtime_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

const char *oos_logtime_print(int64_t time, char to[OOS_TIME_TEXT_BYTES])
{
    if (time == OOS_TIME_NONE) return NULL;
    int64_t nanos = time % SECOND;
    time_t seconds = (time_t)(time / SECOND);
    if (nanos < 0) {
        nanos += SECOND;
        seconds--;
    }
    struct tm at;
    if (!gmtime_r(&seconds, &at)) return NULL;
    size_t const len = strftime(to, OOS_TIME_TEXT_BYTES, "%Y-%m-%dT%H:%M:%S", &at);
    snprintf(to + len, OOS_TIME_TEXT_BYTES - len, ".%03dZ", (int)(nanos / 1000000));
    return to;
}
