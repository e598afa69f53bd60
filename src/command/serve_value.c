/* Values of flags: how a text becomes a number, a word or a switch of oos_serve. JSON values are left to serve_json.c. */
#include "command/command.h"
#include "base/ascii.h"
#include "base/locale.h"

#include <math.h>
#include <stdlib.h>

const oos_flag_field *oos_serve_field(const oos_dialect *dialect, oos_view flag)
{
    if (flag.len < 3) return NULL;
    for (size_t i = 0; i < dialect->field_count; i++) {
        const char *name = dialect->fields[i].flag;
        if (name[2] == flag.ptr[2] && strncmp(name, flag.ptr, flag.len) == 0 && !name[flag.len])
            return &dialect->fields[i];
    }
    return NULL;
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What a number ends with: k, m, g, t are powers of 1000 and a fraction is fine, K, M, G, T powers of 1024 of whole numbers;
 * with an i among the suffixes k, M, G, T are powers of 1000 and Ki, Mi, Gi, Ti of 1024. human_readable_int() of vLLM and of
 * SGLang. Returns the letters taken; 0: no suffix of the form. */
static size_t suffix_factor(const char *suffixes, const char *at, uint64_t *ret_factor)
{
    static const char small[] = "kmgt", large[] = "KMGT";
    bool const iec = strchr(suffixes, 'i'), binary = iec && *at && at[1] == 'i';
    const char *little = *at ? strchr(small, *at) : NULL, *big = *at ? strchr(large, *at) : NULL;
    if (!little && !big) return 0;
    if (binary ? !big : !strchr(suffixes, *at)) return 0;
    uint64_t const base = iec ? (binary ? 1024 : 1000) : little ? 1000 : 1024;
    uint64_t factor = 1;
    for (ptrdiff_t i = 0; i <= (little ? little - small : big - large); i++) factor *= base;
    *ret_factor = factor;
    return binary ? 2 : 1;
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
    size_t const letters = negative || !form ? 0 : suffix_factor(form->suffixes, text, &factor);
    if (letters == 0 || !only_space(text + letters)) return false;
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

/* What a switch is known by here when it is off: the usual spelling, also where the release's help shows another. */
static const char *negative_of(oos_flag_hit hit)
{
    const oos_flag_form *form = hit.form;
    for (size_t i = 0; i < form->negative_count; i++)
        if (strncmp(form->negatives[i], "--no-", 5) == 0) return form->negatives[i];
    return form->negative_count ? form->negatives[0] : NULL;
}

const char *oos_serve_argument(const oos_serve_reader *in, const oos_flag_record *record,
                               const oos_flag_form *form)
{
    const char *all = record->name;
    if (in->python) return all;
    if (form && form->negative_count) all = oos_arena_format(in->arena, "%s/%s", all, form->negatives[0]);
    for (size_t i = 0; all && i < record->alias_count; i++)
        all = oos_arena_format(in->arena, "%s/%s", all, record->aliases[i]);
    return all ? all : record->name;
}

static oomsight_status wrong(oos_serve_reader *in, const oos_flag_record *record, const oos_flag_form *form,
                             const char *wanted, const char *given)
{
    if (strcmp(wanted, "int") == 0 && binary_fraction(given)) {
        char const suffix = given[strlen(given) - 1];
        return oos_serve_refuse(
            in, record->name, given,
            "argument %s: Decimals are not allowed with binary suffixes like %c. Did you mean "
            "to use %.*s%c instead?",
            oos_serve_argument(in, record, form), suffix, (int)strlen(given) - 1, given, suffix - 'A' + 'a');
    }
    if (form && strchr(form->suffixes, 'i'))
        return oos_serve_refuse(
            in, record->name, given,
            "argument %s: Invalid integer value: '%.80s'. Use a plain integer, SI suffixes (1k, 1M), or IEC "
            "suffixes (1Ki, 1Mi). Suffixes are case-sensitive.",
            oos_serve_argument(in, record, form), given);
    if (form && form->nullable && !*form->suffixes && form->kind != OOS_FLAG_KIND_SWITCH)
        return oos_serve_refuse(in, record->name, given,
                                "argument %s: Value %.80s cannot be converted to <class '%s'>.",
                                oos_serve_argument(in, record, form), given, wanted);
    return oos_serve_refuse(in, record->name, given, "argument %s: invalid %s value: '%.80s'",
                            oos_serve_argument(in, record, form), wanted, given);
}

oomsight_status oos_serve_wrong(oos_serve_reader *in, const oos_flag_record *record,
                                const oos_flag_form *form, const char *wanted, const char *given)
{
    bool const first = !in->serve->refusal.sentence;
    OOS_TRY(wrong(in, record, form, wanted, given));
    if (!first || in->python) return OOMSIGHT_OK;
    const char *share = in->dialect->share_flag;
    in->serve->refusal.meant_value =
        oos_serve_number_meant(in->arena, form, wanted, share && strcmp(record->name, share) == 0, given);
    if (in->serve->refusal.meant_value) in->serve->refusal.nearest = in->serve->refusal.flag;
    return OOMSIGHT_OK;
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
static oomsight_status number_check(oos_serve_reader *in, oos_flag_hit hit, const char *value,
                                    oos_flag_kind kind)
{
    bool negative;
    uint64_t whole;
    double number;
    if (hit.form->nullable && (strcmp(value, "None") == 0 || *value == '\0')) return OOMSIGHT_OK;
    if (kind == OOS_FLAG_KIND_INT && !oos_serve_int(hit.form, value, &negative, &whole) &&
        !(hit.form->takes_auto && strcmp(value, "auto") == 0))
        return oos_serve_wrong(in, hit.record, hit.form, "int", value);
    if (kind == OOS_FLAG_KIND_FLOAT && !oos_serve_float(value, &number))
        return oos_serve_wrong(in, hit.record, hit.form, "float", value);
    return OOMSIGHT_OK;
}

/* A word that a release took and a later one did not. */
static bool taken_before(const oos_flag_record *record, const char *value)
{
    for (size_t i = 0; i < record->form_count; i++)
        if (record->forms[i].choice_count && among(&record->forms[i], value)) return true;
    return false;
}

/* Also a word that only another version takes. */
static oomsight_status choice_check(oos_serve_reader *in, oos_flag_hit hit, const char *value)
{
    const oos_flag_form *form = hit.form;
    if (form->choice_count == 0 || among(form, value)) return OOMSIGHT_OK;
    if (oos_serve_newer(in) && !taken_before(hit.record, value)) return OOMSIGHT_OK; /* perhaps it has come */
    if (form->nullable && strcmp(value, "None") == 0) return OOMSIGHT_OK;
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
    bool const first = !in->serve->refusal.sentence;
    OOS_TRY(oos_serve_refuse(in, hit.record->name, value,
                             "argument %s: invalid choice: '%.80s' (choose from %s)",
                             oos_serve_argument(in, hit.record, hit.form), value, list));
    if (first) in->serve->refusal.may_be_over = oos_serve_newer(in);
    return OOMSIGHT_OK;
}

/* A value by its kind; of a list each of its words, which are joined by spaces: a word that has one itself is left alone. */
static oomsight_status value_check(oos_serve_reader *in, oos_flag_hit hit, const char *value, bool modelled)
{
    const oos_flag_form *form = hit.form;
    if (form->kind != OOS_FLAG_KIND_LIST) {
        OOS_TRY(choice_check(in, hit, value));
        return modelled ? OOMSIGHT_OK : number_check(in, hit, value, form->kind);
    }
    bool const numbers = form->item == OOS_FLAG_KIND_INT || form->item == OOS_FLAG_KIND_FLOAT;
    if (in->python || (!numbers && form->choice_count == 0)) return OOMSIGHT_OK;
    for (const char *at = value;; at++) {
        size_t const len = strcspn(at, " ");
        const char *word = oos_arena_copy(in->arena, (oos_view){at, len});
        if (!word) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for %s", hit.record->name);
        OOS_TRY(choice_check(in, hit, word));
        if (!modelled) OOS_TRY(number_check(in, hit, word, form->item));
        at += len;
        if (!*at) return OOMSIGHT_OK;
    }
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
    return said == !hit.negated ? hit.record->name : negative_of(hit);
}

/* ---- setting --------------------------------------------------------------------------------------------------- */

oomsight_status oos_serve_u64(oos_serve_reader *in, oos_flag_hit hit, const char *text, oos_u64 *ret_number)
{
    bool negative;
    uint64_t value;
    if (!oos_serve_int(hit.form, text, &negative, &value))
        return oos_serve_wrong(in, hit.record, hit.form, "int", text);
    *ret_number = negative ? (oos_u64){0} : oos_u64_of(value); /* below its bounds: told by the plan */
    return OOMSIGHT_OK;
}

static oomsight_status pend(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    oos_serve_pending *pending = oos_serve_pend(in, hit.record);
    if (!pending) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for %s", hit.record->name);
    pending->text = text;
    return OOMSIGHT_OK;
}

static oomsight_status value_set(oos_serve_reader *in, oos_flag_hit hit, const oos_flag_field *f,
                                 const char *text, const char **ret_note)
{
    char *at = (char *)in->serve + f->offset;
    bool const none = hit.form->nullable && (strcmp(text, "None") == 0 || *text == '\0');
    switch (f->kind) {
    case OOS_FIELD_U64:
        if (none) {
            *(oos_u64 *)at = (oos_u64){0};
            return OOMSIGHT_OK;
        }
        return oos_serve_u64(in, hit, text, (oos_u64 *)at);
    case OOS_FIELD_F64: {
        double value;
        if (!oos_serve_float(text, &value)) return oos_serve_wrong(in, hit.record, hit.form, "float", text);
        *(oos_f64 *)at = (oos_f64){true, value};
        return OOMSIGHT_OK;
    }
    case OOS_FIELD_STR: *(const char **)at = none ? NULL : text; return OOMSIGHT_OK;
    case OOS_FIELD_YES: break; /* set by the caller: a switch has no text */
    case OOS_FIELD_JSON:
        if (none) return OOMSIGHT_OK;
        OOS_TRY(oos_serve_check_json(in, hit, text));
        if (*text != '{' && !hit.form->pairs && strchr(text, '=') && !*ret_note)
            *ret_note = "this version takes JSON here: '{\"image\": 2}'";
        return pend(in, hit, text);
    case OOS_FIELD_OWN: return none ? OOMSIGHT_OK : in->dialect->take(in, hit, text);
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

bool oos_serve_listed(const char *const *list, const char *flag)
{
    for (; list && *list; list++)
        if (strcmp(*list, flag) == 0) return true;
    return false;
}

static bool is_model(const oos_serve_reader *in, oos_flag_hit hit)
{
    return strcmp(hit.record->name, in->dialect->model_flag) == 0;
}

oos_flag_effect oos_serve_effect(const oos_serve_reader *in, oos_flag_hit hit, const oos_flag_field *f,
                                 const char *value)
{
    if (f || is_model(in, hit) || oos_serve_listed(in->dialect->modelled, hit.record->name))
        return OOS_FLAG_MODELLED;
    if (!hit.record->memory || oos_serve_listed(in->dialect->harmless, hit.record->name))
        return OOS_FLAG_NO_MEMORY;
    if (value && hit.form->preset && strcmp(value, hit.form->preset) == 0) return OOS_FLAG_NO_MEMORY;
    if (!value && hit.form->preset && strcmp(hit.form->preset, hit.negated ? "false" : "true") == 0)
        return OOS_FLAG_NO_MEMORY;
    return OOS_FLAG_UNMODELLED;
}

oomsight_status oos_serve_take(oos_serve_reader *in, oos_flag_hit hit, const char *value)
{
    const oos_flag_field *f =
        oos_serve_field(in->dialect, (oos_view){hit.record->name, hit.record->name_len});
    oos_serve_refusal const before = in->serve->refusal;
    const char *note = version_note(in, hit);
    bool on = !hit.negated;
    if (hit.form->kind == OOS_FLAG_KIND_SWITCH && value) {
        bool said;
        if (!oos_serve_truth(value, &said)) {
            said = true;
            OOS_TRY(oos_serve_wrong(in, hit.record, hit.form, "bool",
                                    value)); /* unless it was refused as a value */
        }
        on = said == on;
        if (hit.form->most_values == 0 && !in->python && !in->stray_of) {
            in->stray_of = hit.record->name; /* told when everything else is read */
            in->stray = value;
            in->stray_meant = oos_serve_switch_meant(hit, value);
        }
    } else if (value) {
        OOS_TRY(value_check(in, hit, value, f != NULL));
    }
    if (is_model(in, hit)) in->model_option = value;
    if (!f && value && hit.form->kind == OOS_FLAG_KIND_JSON) OOS_TRY(oos_serve_check_json(in, hit, value));
    if (f && f->kind == OOS_FIELD_YES)
        *(oos_flag *)((char *)in->serve + f->offset) = (oos_flag){true, on};
    else if (f && value)
        OOS_TRY(value_set(in, hit, f, value, &note));

    if (!hit.here) in->serve->refusal = before; /* the flag itself is what the parser does not know */

    const char *off = hit.form->kind == OOS_FLAG_KIND_SWITCH && !on ? negative_of(hit) : NULL;
    const char *name = off ? off : hit.record->name;
    oos_serve_note(in, (oos_given_flag){.name = oos_arena_copy(in->arena, oos_view_of(name)),
                                        .value = hit.form->kind == OOS_FLAG_KIND_SWITCH ? NULL : value,
                                        .effect = oos_serve_effect(in, hit, f, value),
                                        .note = note,
                                        .absent = !hit.here});
    return OOMSIGHT_OK;
}
