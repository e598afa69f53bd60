/* A tokenizer and the keys. Words are separated by , : [ ] and blanks do not count. */
#include "replay/replay.h"
#include "base/locale.h"

#include "base/size.h"

#include <stdlib.h>

typedef struct reader {
    oos_view rest;
    const oos_torch_rules *rules;
    oos_settings *settings;
    oomsight_error *reterr;
    unsigned words; /* read so far */
} reader;

enum { WORD_BYTES = 64 };
typedef struct word {
    char text[WORD_BYTES]; /* one separator, or a run of other characters; empty at the end */
} word;

static bool is_separator(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static word next_word(reader *r)
{
    word w = {0};
    size_t len = 0;
    r->words++;
    while (r->rest.len) {
        char const c = r->rest.ptr[0];
        if (is_separator(c) && len) break;
        r->rest = oos_view_slice(r->rest, 1, r->rest.len);
        if (c == ' ' || c == '\t' || c == '"' || c == '\'') continue;
        if (len + 1 < WORD_BYTES) w.text[len++] = c;
        if (is_separator(c)) break;
    }
    return w;
}

static bool is(const word *w, const char *text)
{
    return strcmp(w->text, text) == 0;
}

static oomsight_status expect(reader *r, const char *separator)
{
    word const w = next_word(r);
    if (is(&w, separator)) return OOMSIGHT_OK;
    return oos_fail(r->reterr, OOMSIGHT_MALFORMED, "Error parsing CachingAllocator settings, expected %s",
                    separator);
}

static oomsight_status whole_number(reader *r, const word *w, uint64_t *ret_number)
{
    char *end;
    unsigned long long const number = strtoull(w->text, &end, 10);
    if (w->text[0] < '0' || w->text[0] > '9' || *end)
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED, "'%s' is not a whole number", w->text);
    *ret_number = number;
    return OOMSIGHT_OK;
}

static oomsight_status real_number(reader *r, const word *w, double *ret_number)
{
    char *end;
    double const number = oos_real_read(w->text, &end);
    if (!w->text[0] || *end || !(number >= 0 && number <= 1e18))
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED, "'%s' is not a usable number", w->text);
    *ret_number = number;
    return OOMSIGHT_OK;
}

static oomsight_status boolean(reader *r, const char *key, const word *w, bool *ret_value)
{
    if (!is(w, "True") && !is(w, "False"))
        return r->rules->new_parser
                   ? oos_fail(r->reterr, OOMSIGHT_MALFORMED,
                              "Expected 'True' or 'False' at index %u in ConfigTokenizer but got '%s'",
                              r->words - 1, w->text)
                   : oos_fail(r->reterr, OOMSIGHT_MALFORMED, "Expected a single True/False argument for %s",
                              key);
    *ret_value = is(w, "True");
    return OOMSIGHT_OK;
}

static uint64_t mib(uint64_t number)
{
    return number > UINT64_MAX / OOS_MIB ? OOS_UNLIMITED : number * OOS_MIB;
}

/* Keys that may not be below the size of a large segment; up to 2.9 they may not be 20 either. */
static oomsight_status take_bounded(reader *r, const char *key, const word *w, uint64_t *ret_bytes)
{
    uint64_t number = 0;
    OOS_TRY(whole_number(r, w, &number));
    uint64_t const bound = r->rules->segment_size_key ? r->settings->large_segment_bytes / OOS_MIB : 20;
    bool const closed = r->rules->new_parser;
    if (number < bound || (number == bound && !closed))
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED,
                        "CachingAllocator option %s too small, must be %s %llu", key, closed ? ">=" : ">",
                        (unsigned long long)bound);
    *ret_bytes = mib(number);
    return OOMSIGHT_OK;
}

static oomsight_status take_segment_size(reader *r, const word *w)
{
    uint64_t number = 0;
    OOS_TRY(whole_number(r, w, &number));
    if (number <= 10 || number > 1 << 20)
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED,
                        "CachingAllocator option large_segment_size_mb must be > 10 MB");
    r->settings->large_segment_bytes = number * OOS_MIB;
    return OOMSIGHT_OK;
}

static oomsight_status take_threshold(reader *r, const word *w)
{
    double number = 0;
    OOS_TRY(real_number(r, w, &number));
    bool const low = number <= 0, high = number >= 1;
    if ((low || high) && r->rules->new_parser)
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED,
                        "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    if (low || high)
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED, "garbage_collect_threshold too %s, set it 0.0~1.0",
                        low ? "small" : "big");
    r->settings->gc_threshold = number;
    return OOMSIGHT_OK;
}

static oomsight_status take_fraction(reader *r, const word *w)
{
    double number = 0;
    OOS_TRY(real_number(r, w, &number));
    if (number > 1)
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED,
                        "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    r->settings->memory_fraction = number;
    return OOMSIGHT_OK;
}

static oomsight_status take_reserve(reader *r, const word *w)
{
    word number = *w;
    size_t const len = strlen(number.text);
    bool const gib = len && (number.text[len - 1] == 'G' || number.text[len - 1] == 'g');
    if (gib) number.text[len - 1] = '\0';
    double value = 0;
    OOS_TRY(real_number(r, &number, &value));
    r->settings->reserve = gib ? value * 0x1p30 : value;
    r->settings->reserve_is_bytes = gib;
    return OOMSIGHT_OK;
}

static oomsight_status division_value(reader *r, const word *w, uint32_t *ret_value)
{
    uint64_t number = 0;
    OOS_TRY(whole_number(r, w, &number));
    if (number & (number - 1) || number > UINT32_MAX)
        return oos_fail(r->reterr, OOMSIGHT_MALFORMED, "For roundups, the divisions has to be power of 2 ");
    *ret_value = (uint32_t)number;
    return OOMSIGHT_OK;
}

static unsigned division_slot(uint64_t mib_key)
{
    unsigned const log = mib_key ? 63 - (unsigned)__builtin_clzll(mib_key) : 0;
    return log < OOS_DIVISION_SLOTS ? log : OOS_DIVISION_SLOTS - 1;
}

/* [256:1,512:2,1024:4,>:8]: keys in MiB; the first key also fills every lower slot. */
static oomsight_status take_division_list(reader *r)
{
    uint32_t *divisions = r->settings->divisions;
    unsigned last = 0;
    bool first = true;
    for (;;) {
        word const key = next_word(r);
        OOS_TRY(expect(r, ":"));
        word const value_word = next_word(r);
        uint32_t value = 0;
        OOS_TRY(division_value(r, &value_word, &value));
        if (is(&key, ">")) {
            for (unsigned i = last + (r->rules->rest_starts_next_slot ? 1 : 0); i < OOS_DIVISION_SLOTS; i++)
                divisions[i] = value;
        } else {
            uint64_t number = 0;
            OOS_TRY(whole_number(r, &key, &number));
            last = division_slot(number);
            for (unsigned i = 0; first && i < last; i++) divisions[i] = value;
            first = false;
            divisions[last] = value;
        }
        word const w = next_word(r);
        if (is(&w, "]")) return OOMSIGHT_OK;
        if (!is(&w, ","))
            return oos_fail(r->reterr, OOMSIGHT_MALFORMED,
                            "Error parsing CachingAllocator settings, expected , or ]");
    }
}

static oomsight_status take_divisions(reader *r, const word *w)
{
    if (is(w, "[")) return take_division_list(r);
    uint32_t value = 0;
    OOS_TRY(division_value(r, w, &value));
    for (unsigned i = 0; i < OOS_DIVISION_SLOTS; i++) r->settings->divisions[i] = value;
    return OOMSIGHT_OK;
}

/* Keys that have no effect on where device memory lies. */
static bool is_without_effect(const char *key)
{
    static const char *const keys[] = {"backend",
                                       "release_lock_on_cudamalloc",
                                       "pinned_use_cuda_host_register",
                                       "pinned_num_register_threads",
                                       "pinned_use_background_threads",
                                       "pinned_reserve_segment_size_mb",
                                       "pinned_max_round_threshold_mb",
                                       "pinned_max_cached_size_mb",
                                       "graph_capture_record_stream_reuse"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static void skip_list(reader *r)
{
    for (word w = next_word(r); w.text[0] && !is(&w, "]");) w = next_word(r);
}

static oomsight_status take_key(reader *r, const word *key)
{
    const oos_torch_rules *rules = r->rules;
    word const w = next_word(r);
    if (is(key, "max_split_size_mb")) return take_bounded(r, key->text, &w, &r->settings->max_split_bytes);
    if (is(key, "max_non_split_rounding_mb"))
        return take_bounded(r, key->text, &w, &r->settings->non_split_rounding_bytes);
    if (is(key, "garbage_collection_threshold")) return take_threshold(r, &w);
    if (is(key, "roundup_power2_divisions")) return take_divisions(r, &w);
    if (is(key, "expandable_segments")) return boolean(r, key->text, &w, &r->settings->expandable);
    if (rules->segment_size_key && is(key, "large_segment_size_mb")) return take_segment_size(r, &w);
    if (rules->new_parser && is(key, "per_process_memory_fraction")) return take_fraction(r, &w);
    if (rules->throw_key && is(key, "throw_on_cudamalloc_oom"))
        return boolean(r, key->text, &w, &r->settings->throw_on_oom);
    if (rules->reserve_key && is(key, "expandable_segments_reserve")) return take_reserve(r, &w);
    if (is_without_effect(key->text) || is(key, "expandable_segments_reserve_by_class")) {
        if (is(&w, "[")) skip_list(r);
        return OOMSIGHT_OK;
    }
    return oos_fail(r->reterr, OOMSIGHT_MALFORMED,
                    rules->new_parser ? "Unrecognized key '%s' in Accelerator allocator config."
                                      : "Unrecognized CachingAllocator option: %s",
                    key->text);
}

/* large_segment_size_mb is read before all other keys: it is their floor. */
static oomsight_status take_segment_size_first(reader r)
{
    for (word w = next_word(&r); w.text[0]; w = next_word(&r)) {
        if (!is(&w, "large_segment_size_mb")) continue;
        OOS_TRY(expect(&r, ":"));
        word const value = next_word(&r);
        return take_segment_size(&r, &value);
    }
    return OOMSIGHT_OK;
}

void oos_settings_init(oos_settings *settings)
{
    *settings = (oos_settings){.max_split_bytes = OOS_UNLIMITED,
                               .non_split_rounding_bytes = 20 * OOS_MIB,
                               .large_segment_bytes = 20 * OOS_MIB,
                               .memory_fraction = 1};
}

oomsight_status oos_settings_apply(oos_settings *settings, const oos_torch_rules *rules, oos_view text,
                                   oomsight_error *reterr)
{
    settings->max_split_bytes = OOS_UNLIMITED;
    settings->gc_threshold = 0;
    memset(settings->divisions, 0, sizeof settings->divisions);
    reader r = {.rest = text, .rules = rules, .settings = settings, .reterr = reterr};
    if (rules->segment_size_key) {
        OOS_TRY(take_segment_size_first(r));
        settings->non_split_rounding_bytes = settings->large_segment_bytes;
    }
    for (;;) {
        word const key = next_word(&r);
        if (!key.text[0]) return OOMSIGHT_OK;
        if (is(&key, ",")) continue;
        OOS_TRY(expect(&r, ":"));
        OOS_TRY(take_key(&r, &key));
    }
}
