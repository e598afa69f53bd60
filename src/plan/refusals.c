/* The checks of a command before memory is looked at: bounds of numbers, and refusals that are rows of data. */
#include "plan/plan.h"

#include "base/check.h"
#include "base/locale.h"
#include "base/shown.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

bool oos_check_refuse(oos_check *c, const char *format, ...)
{
    if (c->refusal->sentence) return true;
    char text[OOS_REFUSAL_MAX];
    va_list list;
    va_start(list, format);
    oos_vformat(text, sizeof text, format, list);
    va_end(list);
    const char *sentence = oos_arena_copy(c->arena, oos_view_of(text));
    c->refusal->sentence = sentence ? oos_shown(c->arena, sentence) : NULL; /* it quotes the user's words */
    c->nomem = !c->refusal->sentence;
    return true;
}

void oos_check_mend(oos_check *c, const char *flag, uint64_t value)
{
    oos_refusal *r = c->refusal;
    if (r->mend_count < OOS_MENDS_MAX && value > 0)
        r->mends[r->mend_count++] = (oos_mend){.flag = flag, .value = value};
}

void oos_check_mend_without(oos_check *c, const char *flag)
{
    oos_refusal *r = c->refusal;
    const oos_serve *serve = c->serve;
    for (size_t i = 0; i < serve->flag_count; i++) { /* a switch is named as it was given, `--no-x` too */
        const char *given = serve->flags[i].name;
        if (strncmp(given, "--no-", 5) == 0 && strcmp(given + 5, flag + 2) == 0) flag = given;
    }
    if (r->mend_count < OOS_MENDS_MAX)
        r->mends[r->mend_count++] = (oos_mend){.flag = flag, .leave_out = true};
}

static void check_mend_share(oos_check *c, const char *flag, double percent)
{
    oos_refusal *r = c->refusal;
    const char *share = oos_arena_format(c->arena, "%g", percent / 100);
    if (!share) c->nomem = true;
    if (share && r->mend_count < OOS_MENDS_MAX)
        r->mends[r->mend_count++] =
            (oos_mend){.flag = flag, .instead_of = flag, .rewritten = true, .text = share};
}

static uint64_t bits_of(const oos_serve *serve)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < serve->flag_count; i++) bits |= oos_flag_bit(serve->flags[i].name);
    return bits;
}

/* The one place that looks a flag up: as it was given last. */
static const oos_given_flag *flag_of(const oos_check *c, const char *flag)
{
    if (!(c->given & oos_flag_bit(flag))) return NULL;
    for (size_t i = c->serve->flag_count; i > 0; i--)
        if (strcmp(c->serve->flags[i - 1].name, flag) == 0) return &c->serve->flags[i - 1];
    return NULL;
}

const char *oos_check_given(const oos_check *c, const char *flag)
{
    const oos_given_flag *given = flag_of(c, flag);
    return given ? given->value : NULL;
}

bool oos_check_has(const oos_check *c, const char *flag)
{
    return flag_of(c, flag) != NULL;
}

static bool number_of(const char *text, double *ret_value)
{
    char *end;
    size_t digits = 0;
    uint64_t whole = 0;
    for (; digits < 15 && text[digits] >= '0' && text[digits] <= '9'; digits++)
        whole = whole * 10 + (uint64_t)(text[digits] - '0');
    if (digits && !text[digits]) { /* nearly all are: the locale need not be asked */
        *ret_value = (double)whole;
        return true;
    }
    *ret_value = oos_real_read(text, &end);
    if (end == text) return false;
    static const char small[] = "kmgt", large[] = "KMGT";
    const char *at = *end ? strchr(small, *end) : NULL;
    if (at) *ret_value *= pow(1000, (double)(at - small + 1)), end++;
    at = *end ? strchr(large, *end) : NULL;
    if (at) *ret_value *= pow(1024, (double)(at - large + 1)), end++;
    while (*end == ' ' || (*end >= '\t' && *end <= '\r')) end++; /* as Python does */
    return *end == '\0';
}

/* pydantic names the field and the bound. */
static bool refuse_bounds(oos_check *c, const char *flag, const oos_bounds *b, double value)
{
    const char *wanted = "";
    double limit = 0;
    if (!(value >= b->least)) wanted = "greater than or equal to", limit = b->least;
    if (!(value > b->above)) wanted = "greater than", limit = b->above;
    if (!(value <= b->most)) wanted = "less than or equal to", limit = b->most;
    if (!(value < b->below)) wanted = "less than", limit = b->below;
    char name[64];
    size_t len = 0;
    for (const char *at = flag + 2; *at && len + 1 < sizeof name; at++) name[len++] = *at == '-' ? '_' : *at;
    name[len] = '\0';
    if (fmin(b->most, b->below) == 1 && value > 1 &&
        value <= 100) /* a share that was given as a percentage */
        check_mend_share(c, flag, value);
    oos_check_mend_without(c, flag);
    return oos_check_refuse(c, "%s: Input should be %s %g", name, wanted, limit);
}

bool oos_check_number(const oos_check *c, const char *flag, uint64_t *ret_value)
{
    const char *text = oos_check_given(c, flag);
    double value;
    if (!text || !number_of(text, &value) || !(value >= 0 && value < 0x1p53)) return false;
    *ret_value = (uint64_t)value;
    return true;
}

/* The first flag that is outside of its bounds, of one part of the configuration; NULL: of any. */
static bool check_bounds(oos_check *c, const char *part)
{
    for (size_t i = 0; i < c->serve->flag_count; i++) {
        const oos_given_flag *flag = &c->serve->flags[i];
        double value;
        if (!flag->value || flag->absent || flag->effect == OOS_FLAG_UNKNOWN) continue;
        const oos_bounds *b = oos_bounds_find(c->facts, flag->name, c->version);
        if (!b || !b->part_name || (part && strcmp(b->part_name, part) != 0) ||
            !number_of(flag->value, &value) ||
            (value >= b->least && value > b->above && value <= b->most && value < b->below))
            continue;
        if (oos_check_given(c, flag->name) == flag->value) /* a later one counts */
            return !part || refuse_bounds(c, flag->name, b, value);
    }
    return false;
}

static oos_term_value value_of(const oos_check *c, const oos_term *term)
{
    switch (term->kind) {
    case OOS_TERM_FIELD: return c->field(c, term->id);
    case OOS_TERM_FLAG: return (oos_term_value){.word = oos_check_given(c, term->name)};
    case OOS_TERM_NUMBER: return oos_number_value(term->id);
    case OOS_TERM_RULE: break;
    }
    const oos_rule_place *place = &c->refusals->rules[term->id];
    const void *at = (const char *)c->rules + place->offset;
    if (place->kind == OOS_RULE_YES) return oos_number_value(*(const bool *)at);
    if (place->kind == OOS_RULE_WHOLE) return oos_number_value(*(const uint64_t *)at);
    return (oos_term_value){.real = *(const double *)at, .numbered = true};
}

/* With the number that its word is. */
static oos_term_value number_at(const oos_check *c, const oos_term *term)
{
    oos_term_value value = value_of(c, term);
    if (!value.word || !number_of(value.word, &value.real) || isnan(value.real)) return value;
    value.numbered = true;
    value.number = value.real >= 0 && value.real < 0x1p53 ? (uint64_t)value.real : 0;
    value.whole = (double)value.number == value.real;
    return value;
}

static int order_of(const oos_term_value *a, const oos_term_value *b)
{
    if (a->whole && b->whole) return (a->number > b->number) - (a->number < b->number);
    return (a->real > b->real) - (a->real < b->real);
}

/* "deepep_*,nixl_ep,*_mla*": a star stands for anything before or behind. */
static bool is_listed(const char *list, const char *word)
{
    for (size_t len; *list; list += len + (list[len] == ',')) {
        len = strcspn(list, ",");
        bool const before = *list == '*', behind = len > 1 && list[len - 1] == '*';
        oos_view const wanted = {list + before, len - before - behind};
        size_t const has = strlen(word), last = has < wanted.len ? 0 : has - wanted.len;
        for (size_t at = 0; has >= wanted.len && at <= (before ? last : 0); at++)
            if ((behind || at == last) && memcmp(word + at, wanted.ptr, wanted.len) == 0) return true;
    }
    return false;
}

static bool holds(const oos_check *c, const oos_when *when)
{
    if (when->sign == OOS_SIGN_NONE) {
        if (when->left.kind == OOS_TERM_FLAG) return oos_check_has(c, when->left.name);
        oos_term_value const alone = value_of(c, &when->left);
        return alone.word || alone.number;
    }
    if (when->left.kind == OOS_TERM_FLAG && !oos_check_has(c, when->left.name)) return false;
    if (when->sign == OOS_SIGN_IN) {
        const char *word = value_of(c, &when->left).word;
        return word && is_listed(when->right.name, word);
    }
    oos_term_value const left = number_at(c, &when->left), right = number_at(c, &when->right);
    if (!left.numbered || !right.numbered) return false;
    int const order = order_of(&left, &right);
    switch (when->sign) {
    case OOS_SIGN_IS: return order == 0;
    case OOS_SIGN_NOT: return order != 0;
    case OOS_SIGN_BELOW: return order < 0;
    case OOS_SIGN_AT_MOST: return order <= 0;
    case OOS_SIGN_ABOVE: return order > 0;
    case OOS_SIGN_AT_LEAST: return order >= 0;
    case OOS_SIGN_REMAINS: return right.number && left.number % right.number;
    case OOS_SIGN_NONE:
    case OOS_SIGN_IN: break;
    }
    return false;
}

static void term_put(const oos_check *c, const oos_term *term, char *text, size_t capacity)
{
    oos_term_value const value = number_at(c, term);
    if (term->shown == 'f')
        oos_format(text, capacity, "%.1f", value.real);
    else if (value.word && !term->shown)
        oos_format(text, capacity, "%s", value.word);
    else
        oos_format(text, capacity, "%llu", (unsigned long long)value.number);
}

static bool step_refuse(oos_check *c, const oos_refusal_step *step)
{
    char text[OOS_REFUSAL_MAX] = "";
    const oos_term *place = step->places;
    for (size_t i = 0; i < step->fix_count; i++)
        if (step->fix[i].leave_out)
            oos_check_mend_without(c, step->fix[i].flag);
        else
            oos_check_mend(c, step->fix[i].flag, value_of(c, &step->fix[i].value).number);
    c->refusal->phase = step->phase;
    size_t len = 0;
    for (const char *at = step->says; *at && len + 1 < sizeof text; at++) {
        if (*at == '{') {
            term_put(c, place++, text + len, sizeof text - len);
            len += strlen(text + len);
            at = strchr(at, '}');
        } else {
            text[len++] = *at;
            text[len] = '\0';
        }
    }
    return oos_check_refuse(c, "%s", text);
}

/* Most steps want a flag that the command has not, or a number outside of its bounds. */
static oos_step_set steps_for(const oos_refusals *refusals, uint64_t given, bool outside)
{
    oos_step_set set = refusals->always;
    for (size_t i = 0; outside && i < OOS_STEPS_MAX / 64; i++) set.words[i] |= refusals->bounds.words[i];
    for (; given; given &= given - 1)
        for (size_t i = 0; i < OOS_STEPS_MAX / 64; i++)
            set.words[i] |= refusals->by_flag[__builtin_ctzll(given)].words[i];
    return set;
}

/* The first step of the set from `at` on; OOS_STEPS_MAX: none. */
static size_t step_from(const oos_step_set *set, size_t at)
{
    for (; at < OOS_STEPS_MAX; at = (at | 63) + 1) {
        uint64_t const rest = set->words[at / 64] >> at % 64;
        if (rest) return at + (size_t)__builtin_ctzll(rest);
    }
    return OOS_STEPS_MAX;
}

oomsight_status oos_check_run(oos_check *c, oomsight_error *reterr)
{
    *c->refusal = (oos_refusal){.phase = OOS_PHASE_ARGUMENTS};
    c->given = bits_of(c->serve);
    bool refused = false, outside = check_bounds(c, NULL);
    oos_step_set const set = steps_for(c->refusals, c->given, outside);
    for (size_t i = 0, next; (i = step_from(&set, i)) < OOS_STEPS_MAX && !refused; i = next) {
        const oos_refusal_step *step = c->refusals->steps[i];
        size_t held = 0;
        next = i + 1;
        if (step->flags & ~c->given || (step->bounds && !outside)) continue;
        while (held < step->when_count && holds(c, &step->when[held]) != step->when[held].negated) held++;
        if (held < step->when_count) {
            oos_assert(step->other > i);
            if (held == 0) next = step->other;
            continue;
        }
        c->refusal->may_be_over = c->newer && step->changes;
        refused = step->says     ? step_refuse(c, step)
                  : step->bounds ? check_bounds(c, step->bounds)
                                 : c->checks[step->check](c);
    }
    return c->nomem ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a refusal") : OOMSIGHT_OK;
}
