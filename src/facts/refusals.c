/* Reading data/engines/<engine>/refusals.json. Strict: a name that nobody knows or a field that no step has is an error. */
#include "facts/facts.h"
#include "ledger/ledger.h"

#include <stdlib.h>

typedef struct reading {
    oos_arena *arena;
    oos_scan scan;
    const oos_refusal_names *names;
    oos_refusals *to;
    oos_view raw, begins; /* the text that was read last, and the first condition of a step */
    const char *problem;  /* NULL: none yet */
    bool no_memory;
} reading;

static void object_to(reading *r, const char *problem)
{
    if (!r->problem) r->problem = problem;
    r->scan.failed = true;
}

/* "" where there is none. */
static char *text_read(reading *r)
{
    static char none[1];
    if (!oos_scan_string(&r->scan, &r->raw)) return none;
    if (r->raw.len == 0 || r->raw.len > OOS_REFUSAL_MAX) object_to(r, "a text is empty or too long");
    char *copy = oos_scan_text(r->arena, r->raw);
    if (!copy) r->no_memory = r->scan.failed = true;
    return copy ? copy : none;
}

static size_t place_of(const char *const *list, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(list[i], name) != 0) i++;
    return i;
}

/* The name is kept. */
static oos_term term_of(reading *r, const char *name)
{
    oos_term term = {.name = name};
    if (strncmp(name, "--", 2) == 0) {
        term.kind = OOS_TERM_FLAG;
        return term;
    }
    if (*name >= '0' && *name <= '9' && strlen(name) < 16) {
        char *end;
        term.id = strtoull(name, &end, 10);
        if (!*end) return term;
    }
    term.kind = OOS_TERM_FIELD;
    term.id = place_of(r->names->fields, r->names->field_count, name);
    if (term.id < r->names->field_count) return term;
    term.kind = OOS_TERM_RULE;
    for (term.id = 0; term.id < r->to->rule_count; term.id++)
        if (strcmp(r->to->rules[term.id].name, name) == 0) return term;
    object_to(r, "a name is no flag, number, rule or field of a start");
    return term;
}

/* "X", "!X", "X < Y" */
static void condition_read(reading *r, oos_refusal_step *step)
{
    oos_when *ret_condition = &step->when[step->when_count++];
    static const char *const signs[] = {"", "=", "!=", "<", "<=", ">", ">=", "%", "in"};
    char *left = text_read(r);
    if (step->when_count == 1) r->begins = r->raw;
    ret_condition->negated = *left == '!';
    left += ret_condition->negated;
    char *sign = strchr(left, ' '), *right = sign ? strchr(sign + 1, ' ') : NULL;
    if (sign) *sign++ = '\0';
    if (right) *right++ = '\0';
    ret_condition->left = term_of(r, left);
    if (ret_condition->left.kind == OOS_TERM_FLAG && !ret_condition->negated)
        step->flags |= oos_flag_bit(left);
    if (!sign) return;
    size_t const known = sizeof signs / sizeof *signs, place = place_of(signs, known, sign);
    if (!right || place == 0 || place == known) {
        object_to(r, "a condition is a name, or two with a sign between them");
        return;
    }
    ret_condition->sign = (oos_sign)place;
    ret_condition->right = place == OOS_SIGN_IN ? (oos_term){.name = right} : term_of(r, right);
}

/* "---flag": without it; "--flag=X" */
static void correction_read(reading *r, oos_correction *ret_correction)
{
    char *flag = text_read(r), *value = strchr(flag, '=');
    bool const leaves_out = strncmp(flag, "---", 3) == 0;
    if (strncmp(flag, "--", 2) != 0 || leaves_out == (value != NULL))
        object_to(r, "a correction is ---flag or --flag=name");
    if (value) *value++ = '\0';
    *ret_correction = (oos_correction){.flag = flag + leaves_out, .leave_out = leaves_out};
    if (value) ret_correction->value = term_of(r, value);
}

/* "... ({tokens}) ... '{--dtype}'", after a colon how it is shown: "{--max-loras:d}" */
static void sentence_read(reading *r, oos_refusal_step *step)
{
    step->says = text_read(r);
    for (const char *at = strchr(step->says, '{'); at && !r->scan.failed; at = strchr(at, '{')) {
        size_t const len = strcspn(++at, ":}"), whole = strcspn(at, "}");
        char *name = oos_arena_copy(r->arena, (oos_view){at, len});
        if (step->place_count == OOS_PLACES_MAX || !at[whole])
            object_to(r, "a sentence has too many places, or one without an end");
        if (!name) r->no_memory = r->scan.failed = true;
        if (r->scan.failed) return;
        step->places[step->place_count] = term_of(r, name);
        step->places[step->place_count++].shown = len < whole ? at[whole - 1] : '\0';
    }
}

static void field_read(reading *r, oos_view key, oos_refusal_step *step)
{
    bool const when = oos_view_is(key, "when");
    if (oos_view_is(key, "says")) {
        sentence_read(r, step);
    } else if (oos_view_is(key, "bounds")) {
        step->bounds = text_read(r);
    } else if (oos_view_is(key, "of")) {
        oos_scan_skip(&r->scan, NULL);
    } else if (oos_view_is(key, "phase")) {
        step->phase = oos_phase_find(text_read(r));
        if (step->phase == OOS_PHASE_COUNT) object_to(r, "a phase has another name");
    } else if (oos_view_is(key, "check")) {
        step->check = place_of(r->names->checks, r->names->check_count, text_read(r));
        if (step->check == r->names->check_count) object_to(r, "a check has no code");
    } else if (when || oos_view_is(key, "fix")) {
        size_t *count = when ? &step->when_count : &step->fix_count;
        size_t const most = when ? OOS_WHEN_MAX : OOS_CORRECTIONS_MAX;
        if (!oos_scan_open(&r->scan, '[')) return;
        while (oos_scan_item(&r->scan)) {
            if (*count == most)
                object_to(r, "a step has too many conditions or corrections");
            else if (when)
                condition_read(r, step);
            else
                correction_read(r, &step->fix[(*count)++]);
        }
    } else {
        object_to(r, "a step has an unknown field");
    }
}

static void steps_read(reading *r)
{
    oos_view key, before = {"", 0};
    oos_refusals *to = r->to;
    size_t alike = 0;
    if (!oos_scan_open(&r->scan, '[')) return;
    for (; oos_scan_item(&r->scan); to->count++) {
        oos_refusal_step *step = OOS_NEW(r->arena, oos_refusal_step);
        r->no_memory |= !step;
        if (to->count == OOS_STEPS_MAX) object_to(r, "there are too many steps");
        if (!step || r->scan.failed || !oos_scan_open(&r->scan, '{')) return;
        *step = (oos_refusal_step){.check = SIZE_MAX, .phase = OOS_PHASE_ARGUMENTS};
        r->begins.len = 0;
        while (oos_scan_key(&r->scan, &key)) field_read(r, key, step);
        if (!step->fix_count && step->says && step->when_count && step->when[0].left.kind == OOS_TERM_FLAG &&
            !step->when[0].negated)
            step->fix[step->fix_count++] =
                (oos_correction){.flag = step->when[0].left.name, .leave_out = true};
        if (!!step->says + !!step->bounds + (step->check != SIZE_MAX) != 1)
            object_to(r, "a step is a sentence, bounds or a check");
        if (!oos_view_equal(r->begins, before)) alike = to->count;
        before = r->begins;
        to->steps[to->count] = step;
        oos_step_set *set = step->flags    ? &to->by_flag[__builtin_ctzll(step->flags)]
                            : step->bounds ? &to->bounds
                                           : &to->always;
        set->words[to->count / 64] |= (uint64_t)1 << to->count % 64;
        for (size_t i = alike; i <= to->count; i++) to->steps[i]->other = to->count + 1;
    }
}

oomsight_status oos_refusals_read(oos_arena *arena, oos_view bytes, const oos_refusal_names *names,
                                  const oos_rule_place *rules, size_t rule_count,
                                  const oos_refusals **ret_refusals, oomsight_error *reterr)
{
    oos_refusals *to = OOS_NEW(arena, oos_refusals);
    if (!to) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the refusals");
    *to = (oos_refusals){.steps = OOS_NEW_ARRAY(arena, oos_refusal_step *, OOS_STEPS_MAX),
                         .rules = rules,
                         .rule_count = rule_count};
    if (!to->steps) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the refusals");
    reading r = {.arena = arena, .scan = oos_scan_begin(bytes), .names = names, .to = to};
    steps_read(&r);
    if (r.no_memory) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the refusals");
    if (!oos_scan_done(&r.scan))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "%s (step %zu)",
                        r.problem ? r.problem : "not the JSON that is expected", to->count + 1);
    *ret_refusals = to;
    return OOMSIGHT_OK;
}
