/* Values of flags: which field of oos_serve a flag fills, and how its text becomes a number. JSON values are left to
 * serve_json.c. */
#include "command/command.h"
#include "base/ascii.h"
#include "base/locale.h"

#include <math.h>
#include <stdlib.h>

typedef enum field_kind {
    FIELD_U64,
    FIELD_F64,
    FIELD_YES,
    FIELD_STR,
    FIELD_JSON,   /* pending until all words are read */
    FIELD_SPECIAL /* below, one by one */
} field_kind;

typedef struct field {
    const char *name;
    uint8_t len;
    uint8_t kind;
    uint16_t offset;
} field;

#define FIELD(kind_, name_, flag) {flag, sizeof(flag) - 1, kind_, offsetof(oos_serve, name_)},
#define U64(name, flag) FIELD(FIELD_U64, name, flag)
#define F64(name, flag) FIELD(FIELD_F64, name, flag)
#define YES(name, flag) FIELD(FIELD_YES, name, flag)
#define STR(name, flag) FIELD(FIELD_STR, name, flag)
#define OTHER(kind_, flag) {flag, sizeof(flag) - 1, kind_, 0},
static const field fields[] = {
    OOS_SERVE_MAP(U64, F64, YES, STR) OTHER(FIELD_JSON, "--compilation-config")
        OTHER(FIELD_JSON, "--speculative-config") OTHER(FIELD_JSON, "--limit-mm-per-prompt")
            OTHER(FIELD_JSON, "--mm-processor-kwargs") OTHER(FIELD_JSON, "--hf-overrides")
                OTHER(FIELD_JSON, "--attention-config") OTHER(FIELD_JSON, "--rope-scaling")
                    OTHER(FIELD_SPECIAL, "--rope-theta") OTHER(FIELD_SPECIAL, "--model")
                        OTHER(FIELD_SPECIAL, "--task") OTHER(FIELD_SPECIAL, "--optimization-level")
                            OTHER(FIELD_SPECIAL, "--cuda-graph-sizes") OTHER(FIELD_SPECIAL,
                                                                             "--cudagraph-capture-sizes")
                                OTHER(FIELD_SPECIAL, "--max-cudagraph-capture-size")
                                    OTHER(FIELD_SPECIAL, "--speculative-model")
                                        OTHER(FIELD_SPECIAL, "--num-speculative-tokens")
                                            OTHER(FIELD_SPECIAL, "--speculative-draft-tensor-parallel-size")
                                                OTHER(FIELD_SPECIAL, "--spec-method")
                                                    OTHER(FIELD_SPECIAL, "--spec-model")
                                                        OTHER(FIELD_SPECIAL, "--spec-tokens")};
#undef FIELD
#undef U64
#undef F64
#undef YES
#undef STR
#undef OTHER

/* Marked as moving memory in the table because they can decide whether a model is built at all, or where processes
 * live; the bytes of a device do not depend on them. */
static const char *const harmless[] = {
    "--trust-remote-code", "--distributed-executor-backend", "--code-revision", "--api-server-count",
    "--config-format",
};

static const field *field_find(const oos_flag_record *record)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].len == record->name_len && memcmp(fields[i].name, record->name, record->name_len) == 0)
            return &fields[i];
    return NULL;
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* k, m, g, t: powers of 1000, a fraction is fine; K, M, G, T: powers of 1024, whole numbers only.
 * vLLM's human_readable_int(). */
static bool suffix_factor(char suffix, uint64_t *ret_factor)
{
    static const char small[] = "kmgt", large[] = "KMGT";
    const char *at = suffix ? strchr(small, suffix) : NULL;
    uint64_t factor = 1;
    if (at) {
        for (ptrdiff_t i = 0; i <= at - small; i++) factor *= 1000;
    } else {
        at = suffix ? strchr(large, suffix) : NULL;
        if (!at) return false;
        for (ptrdiff_t i = 0; i <= at - large; i++) factor *= 1024;
    }
    *ret_factor = factor;
    return true;
}

/* Python's int() and float() take white space on both sides. */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool only_space(const char *text)
{
    while (is_space(*text)) text++;
    return *text == '\0';
}

bool oos_serve_int(const oos_flag_form *form, const char *text, bool *ret_negative, uint64_t *ret_value)
{
    uint64_t number = 0, factor;
    while (is_space(*text)) text++;
    bool const negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    const char *first = text;
    for (; digit(*text) || (*text == '_' && text > first && digit(text[-1]) && digit(text[1])); text++) {
        if (*text == '_') continue; /* Python's 1_000 */
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return false;
    }
    if (text == first) return false;
    *ret_negative = negative;
    *ret_value = number;
    if (only_space(text)) return true;

    double fraction = 0, place = 1;
    bool const whole = *text != '.';
    if (!whole) {
        text++;
        if (!digit(*text)) return false;
        for (; digit(*text); text++) fraction += (*text - '0') * (place /= 10);
    }
    if (negative || !*text || !only_space(text + 1) || !form || !strchr(form->suffixes, *text) ||
        !suffix_factor(*text, &factor))
        return false;
    if (whole) return !__builtin_mul_overflow(number, factor, ret_value);
    if (factor % 1000 != 0) return false;
    double const product = ((double)number + fraction) * (double)factor;
    if (product >= 0x1p63) return false;
    *ret_value = (uint64_t)(product + 1e-6); /* 2.3k is 2300 although 2.3 is a little less */
    return true;
}

bool oos_serve_float(const char *text, double *ret_value)
{
    /* What fits exactly is computed exactly, without a detour over the general reader. */
    static const double tens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t mantissa = 0;
    unsigned digits = 0, places = 0;
    while (is_space(*text)) text++;
    bool const negative = *text == '-';
    const char *at = text + (*text == '-' || *text == '+');
    bool point = false;
    for (; digit(*at) || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        if (digits < 18) mantissa = mantissa * 10 + (uint64_t)(*at - '0');
        digits++;
        places += point;
    }
    if (digits == 0) return false;
    double value;
    if (only_space(at) && digits <= 15) {
        value = (double)mantissa / tens[places];
        if (negative) value = -value;
    } else {
        char *end;
        if (!only_space(at) && *at != 'e' && *at != 'E') return false;
        value = oos_real_read(text, &end);
        if (!only_space(end)) return false;
    }
    if (!isfinite(value)) return false;
    *ret_value = value;
    return true;
}

bool oos_serve_ints(oos_arena *arena, const char *text, const uint64_t **ret_list, size_t *ret_count)
{
    static const char between[] = " ,[]()";
    size_t count = 0;
    char *copy = oos_arena_copy(arena, oos_view_of(text));
    uint64_t *list = OOS_NEW_ARRAY(arena, uint64_t, strlen(text) / 2 + 1);
    if (!copy || !list) return false;
    for (char *rest = NULL, *word = strtok_r(copy, between, &rest); word;
         word = strtok_r(NULL, between, &rest)) {
        bool negative;
        if (!oos_serve_int(NULL, word, &negative, &list[count]) || negative || list[count] > OOS_JSON_MAX)
            return false;
        count++;
    }
    *ret_list = list;
    *ret_count = count;
    return true;
}

/* ---- what a value may be --------------------------------------------------------------------------------------- */

/* "8.5K": human_readable_int() */
static bool binary_fraction(const char *text)
{
    size_t const len = strlen(text);
    return len > 1 && strchr("KMGT", text[len - 1]) && strspn(text, "0123456789.") == len - 1 &&
           strchr(text, '.');
}

const char *oos_serve_argument(const oos_serve_reader *in, const oos_flag_record *record)
{
    const char *all = record->name;
    if (in->python) return all;
    if (record->negative) all = oos_arena_format(in->arena, "%s/%s", all, record->negative);
    for (size_t i = 0; all && i < record->alias_count; i++)
        all = oos_arena_format(in->arena, "%s/%s", all, record->aliases[i]);
    return all ? all : record->name;
}

/* `form` may be NULL. A flag that also takes nothing at all is read by another function, which says it otherwise. */
static oomsight_status wrong(oos_serve_reader *in, const oos_flag_record *record, const oos_flag_form *form,
                             const char *wanted, const char *given)
{
    if (strcmp(wanted, "int") == 0 && binary_fraction(given)) {
        char const suffix = given[strlen(given) - 1];
        return oos_serve_refuse(
            in, record->name, given,
            "argument %s: Decimals are not allowed with binary suffixes like %c. Did you mean "
            "to use %.*s%c instead?",
            oos_serve_argument(in, record), suffix, (int)strlen(given) - 1, given, suffix - 'A' + 'a');
    }
    if (form && form->nullable && !*form->suffixes && form->kind != OOS_FLAG_KIND_SWITCH)
        return oos_serve_refuse(in, record->name, given,
                                "argument %s: Value %.80s cannot be converted to <class '%s'>.",
                                oos_serve_argument(in, record), given, wanted);
    return oos_serve_refuse(in, record->name, given, "argument %s: invalid %s value: '%.80s'",
                            oos_serve_argument(in, record), wanted, given);
}

static bool among(const oos_flag_form *form, const char *value)
{
    for (size_t i = 0; i < form->choice_count; i++) {
        const char *choice = form->choices[i];
        bool same = strcmp(choice, value) == 0;
        if (!same && digit(*choice)) { /* compared as numbers */
            bool negative;
            uint64_t is, wanted;
            same = oos_serve_int(NULL, value, &negative, &is) && !negative &&
                   oos_serve_int(NULL, choice, &negative, &wanted) && is == wanted;
        }
        if (!same && form->folds) {
            size_t k = 0;
            for (; value[k] && choice[k]; k++) {
                char c = value[k] == '-' ? '_' : value[k];
                if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
                if (c != (choice[k] == '-' ? '_' : choice[k])) break;
            }
            same = !value[k] && !choice[k];
        }
        if (same) return true;
    }
    return false;
}

/* Numbers of flags that are not modelled: the engine would stop at a wrong one, so it is told here too. */
static oomsight_status number_check(oos_serve_reader *in, oos_flag_hit hit, const char *value)
{
    bool negative;
    uint64_t whole;
    double number;
    if (hit.form->nullable && (strcmp(value, "None") == 0 || *value == '\0')) return OOMSIGHT_OK;
    if (hit.form->kind == OOS_FLAG_KIND_INT && !oos_serve_int(hit.form, value, &negative, &whole) &&
        !(hit.form->takes_auto && strcmp(value, "auto") == 0))
        return wrong(in, hit.record, hit.form, "int", value);
    if (hit.form->kind == OOS_FLAG_KIND_FLOAT && !oos_serve_float(value, &number))
        return wrong(in, hit.record, hit.form, "float", value);
    return OOMSIGHT_OK;
}

/* Also a word that only another version takes. */
static oomsight_status choice_check(oos_serve_reader *in, oos_flag_hit hit, const char *value)
{
    const oos_flag_form *form = hit.form;
    if (form->choice_count == 0 || among(form, value) || oos_serve_newer(in)) return OOMSIGHT_OK;
    if (form->nullable && strcmp(value, "None") == 0) return OOMSIGHT_OK;
    if (form->kind == OOS_FLAG_KIND_LIST) return OOMSIGHT_OK; /* several words, each a choice */
    char list[320];
    size_t len = 0;
    for (size_t i = 0; i < form->choice_count; i++) {
        size_t const more = strlen(form->choices[i]);
        if (len + more + 8 >= sizeof list) {
            memcpy(list + len, ", ...", 5);
            len += 5;
            break;
        }
        if (len) {
            memcpy(list + len, ", ", 2);
            len += 2;
        }
        memcpy(list + len, form->choices[i], more);
        len += more;
    }
    list[len] = '\0';
    return oos_serve_refuse(in, hit.record->name, value,
                            "argument %s: invalid choice: '%.80s' (choose from %s)",
                            oos_serve_argument(in, hit.record), value, list);
}

bool oos_serve_truth(const char *word, bool *ret_value)
{
    static const char *const yes[] = {"true", "1", "yes", "on"}, *const no[] = {"false", "0", "no", "off"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        *ret_value = oos_same(word, yes[i]);
        if (*ret_value || oos_same(word, no[i])) return true;
    }
    return false;
}

const char *oos_serve_switch_meant(oos_flag_hit hit, const char *value)
{
    bool said;
    if (!oos_serve_truth(value, &said)) return NULL;
    return said == !hit.negated ? hit.record->name : hit.record->negative;
}

/* ---- setting --------------------------------------------------------------------------------------------------- */

static oomsight_status u64_read(oos_serve_reader *in, oos_flag_hit hit, const char *text, oos_u64 *ret_number)
{
    bool negative;
    uint64_t value;
    if (!oos_serve_int(hit.form, text, &negative, &value))
        return wrong(in, hit.record, hit.form, "int", text);
    if (negative && value == 1 && strcmp(hit.record->name, "--max-logprobs") == 0) {
        *ret_number = (oos_u64){0}; /* -1: as many as asked for */
        return OOMSIGHT_OK;
    }
    *ret_number = negative ? (oos_u64){0} : oos_u64_of(value); /* below its bounds: told by the plan */
    return OOMSIGHT_OK;
}

static oomsight_status max_model_len_read(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    bool negative = false;
    uint64_t value = 0;
    oos_serve *serve = in->serve;
    bool const is_auto = strcmp(text, "auto") == 0;
    if (is_auto && hit.here && !hit.form->takes_auto && !in->python)
        return oos_serve_refuse(in, hit.record->name, text,
                                "argument %s: invalid human_readable_int value: '%s'", hit.record->name,
                                text);
    if (!is_auto && !oos_serve_int(hit.form, text, &negative, &value))
        return wrong(in, hit.record, hit.form, "int", text);
    serve->max_model_len_auto = is_auto || (negative && value == 1);
    serve->max_model_len = (oos_u64){0};
    if (serve->max_model_len_auto) return OOMSIGHT_OK;
    if (!negative) serve->max_model_len = oos_u64_of(value);
    return OOMSIGHT_OK;
}

static oomsight_status graph_sizes_read(oos_serve_reader *in, const oos_flag_record *record, const char *text)
{
    oos_compilation *compilation = &in->serve->compilation;
    const uint64_t *list;
    size_t count;
    if (!oos_serve_ints(in->arena, text, &list, &count)) return wrong(in, record, NULL, "int", text);
    /* vLLM 0.9 to 0.11, --cuda-graph-sizes: one number is the largest size, several are the sizes */
    if (count == 1 && strcmp(record->name, "--cuda-graph-sizes") == 0) {
        compilation->max_capture_size = oos_u64_of(list[0]);
        return OOMSIGHT_OK;
    }
    compilation->capture_sizes = list;
    compilation->capture_size_count = count;
    compilation->capture_sizes_given = true;
    return OOMSIGHT_OK;
}

/* --task of the versions before --runner: everything but text comes from a pooling model. */
static const char *runner_of_task(const char *task)
{
    static const char *const pooling[] = {"embed", "embedding", "classify", "reward", "score"};
    for (size_t i = 0; i < sizeof pooling / sizeof *pooling; i++)
        if (strcmp(task, pooling[i]) == 0) return "pooling";
    return strcmp(task, "auto") == 0 ? NULL : "generate";
}

static oomsight_status special_read(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    const char *name = hit.record->name;
    oos_serve *serve = in->serve;
    oos_speculative *draft = &serve->speculative;
    if (strcmp(name, "--model") == 0) {
        in->model_option = text;
    } else if (strcmp(name, "--task") == 0) {
        serve->runner = runner_of_task(text);
    } else if (strcmp(name, "--optimization-level") == 0) {
        bool negative;
        uint64_t level;
        bool const number = oos_serve_int(NULL, *text == 'O' ? text + 1 : text, &negative, &level);
        serve->compilation.optimization_level = oos_u64_of(number && !negative ? level : UINT64_MAX);
    } else if (strcmp(name, "--max-cudagraph-capture-size") == 0) {
        return u64_read(in, hit, text, &serve->compilation.max_capture_size);
    } else if (strstr(name, "-sizes")) {
        return graph_sizes_read(in, hit.record, text);
    } else if (strcmp(name, "--spec-method") == 0) {
        draft->present = true;
        draft->method = text;
    } else if (strcmp(name, "--num-speculative-tokens") == 0 || strcmp(name, "--spec-tokens") == 0) {
        draft->present = true;
        return u64_read(in, hit, text, &draft->tokens);
    } else if (strcmp(name, "--speculative-draft-tensor-parallel-size") == 0) {
        return u64_read(in, hit, text, &draft->draft_tensor_parallel_size);
    } else if (strstr(name, "-model")) { /* --speculative-model, --spec-model */
        draft->present = true;
        if (strcmp(text, "[ngram]") == 0)
            draft->method = "ngram";
        else
            draft->model = text;
    } else if (strcmp(name, "--rope-theta") == 0) {
        double theta;
        if (!oos_serve_float(text, &theta)) return wrong(in, hit.record, hit.form, "float", text);
        json_t *rope = oos_serve_rope(in);
        if (!rope) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for --rope-theta");
        json_object_set_new(rope, "rope_theta", json_real(theta));
    }
    return OOMSIGHT_OK;
}

static oomsight_status pend(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    oos_serve_pending *pending = oos_serve_pend(in, hit.record);
    if (!pending) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for %s", hit.record->name);
    pending->text = text;
    return OOMSIGHT_OK;
}

static oomsight_status value_set(oos_serve_reader *in, oos_flag_hit hit, const field *f, const char *text,
                                 const char **ret_note)
{
    char *at = (char *)in->serve + f->offset;
    bool const none = hit.form->nullable && (strcmp(text, "None") == 0 || *text == '\0');
    switch ((field_kind)f->kind) {
    case FIELD_U64:
        if (none) {
            *(oos_u64 *)at = (oos_u64){0};
            return OOMSIGHT_OK;
        }
        return u64_read(in, hit, text, (oos_u64 *)at);
    case FIELD_F64: {
        double value;
        if (!oos_serve_float(text, &value)) return wrong(in, hit.record, hit.form, "float", text);
        *(oos_f64 *)at = (oos_f64){true, value};
        return OOMSIGHT_OK;
    }
    case FIELD_STR:
        if (strcmp(hit.record->name, "--max-model-len") == 0 && !none)
            OOS_TRY(max_model_len_read(in, hit, text));
        *(const char **)at = none ? NULL : text;
        return OOMSIGHT_OK;
    case FIELD_YES: break; /* set by the caller: a switch has no text */
    case FIELD_JSON:
        if (none) return OOMSIGHT_OK;
        OOS_TRY(oos_serve_check_json(in, hit, text));
        if (*text != '{' && !hit.form->pairs && strchr(text, '=') && !*ret_note)
            *ret_note = "this version takes JSON here: '{\"image\": 2}'";
        return pend(in, hit, text);
    case FIELD_SPECIAL: return none ? OOMSIGHT_OK : special_read(in, hit, text);
    }
    return OOMSIGHT_OK;
}

static const char *version_note(oos_serve_reader *in, oos_flag_hit hit)
{
    char here[32], there[32];
    if (hit.here) return NULL;
    oos_version_print(in->version, here, sizeof here);
    if (hit.record->since > in->version) {
        oos_version_print(hit.record->since, there, sizeof there);
        return oos_arena_format(in->arena, "not in %s, new in %s", here, there);
    }
    if (hit.record->until == UINT64_MAX)
        return oos_arena_format(in->arena, "this spelling is not in %s", here);
    oos_version_print(hit.record->until, there, sizeof there);
    return oos_arena_format(in->arena, "not in %s, last in %s", here, there);
}

/* The engine's own plan looks at it. */
static bool looked_up(const oos_dialect *dialect, const char *flag)
{
    for (const char *const *at = dialect->modelled; at && *at; at++)
        if (strcmp(*at, flag) == 0) return true;
    return false;
}

static oos_flag_effect effect_of(const oos_serve_reader *in, oos_flag_hit hit, const field *f,
                                 const char *value)
{
    if (f || looked_up(in->dialect, hit.record->name)) return OOS_FLAG_MODELLED;
    if (!hit.record->memory) return OOS_FLAG_NO_MEMORY;
    if (value && hit.form->preset && strcmp(value, hit.form->preset) == 0) return OOS_FLAG_NO_MEMORY;
    if (!value && hit.form->preset && strcmp(hit.form->preset, hit.negated ? "false" : "true") == 0)
        return OOS_FLAG_NO_MEMORY;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(hit.record->name, harmless[i]) == 0) return OOS_FLAG_NO_MEMORY;
    return OOS_FLAG_UNMODELLED;
}

oomsight_status oos_serve_take(oos_serve_reader *in, oos_flag_hit hit, const char *value)
{
    const field *f = in->dialect->typed ? field_find(hit.record) : NULL;
    oos_serve_refusal const before = in->serve->refusal;
    const char *note = version_note(in, hit);
    bool on = !hit.negated;
    if (hit.form->kind == OOS_FLAG_KIND_SWITCH && value) {
        bool said;
        if (!oos_serve_truth(value, &said)) {
            said = true;
            OOS_TRY(wrong(in, hit.record, hit.form, "bool", value)); /* unless it was refused as a value */
        }
        on = said == on;
        if (hit.form->most_values == 0 && !in->python && !in->stray_of) {
            in->stray_of = hit.record->name; /* told when everything else is read */
            in->stray = value;
            in->stray_meant = oos_serve_switch_meant(hit, value);
        }
    } else if (value) {
        OOS_TRY(choice_check(in, hit, value));
    }
    if (in->dialect->model_flag && strcmp(hit.record->name, in->dialect->model_flag) == 0)
        in->model_option = value;
    if (!f && value) OOS_TRY(number_check(in, hit, value));
    if (!f && value && hit.form->kind == OOS_FLAG_KIND_JSON) OOS_TRY(oos_serve_check_json(in, hit, value));
    if (f && f->kind == FIELD_YES)
        *(oos_flag *)((char *)in->serve + f->offset) = (oos_flag){true, on};
    else if (f && value)
        OOS_TRY(value_set(in, hit, f, value, &note));

    if (!hit.here) in->serve->refusal = before; /* the flag itself is what the parser does not know */

    bool const off = hit.form->kind == OOS_FLAG_KIND_SWITCH && !on && hit.record->negative;
    const char *name = off ? hit.record->negative : hit.record->name;
    oos_serve_note(in, (oos_given_flag){.name = oos_arena_copy(in->arena, oos_view_of(name)),
                                        .value = hit.form->kind == OOS_FLAG_KIND_SWITCH ? NULL : value,
                                        .effect = effect_of(in, hit, f, value),
                                        .note = note,
                                        .absent = !hit.here});
    return OOMSIGHT_OK;
}
