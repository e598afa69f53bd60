/* The rules, and the order in which they are asked: is it memory at all, where, why. */
#include "facts/facts.h"
#include "explain/explain.h"
#include "base/json.h"

enum { PHASES_MAX = 8 };
/* An exception that names no reason is no proof that it was not memory. */
#define VAGUE_SURE 0.45
#define NAMED_SURE 0.8

typedef struct phase_rule {
    oos_condition when;
    oos_phase phase; /* OOS_PHASE_COUNT: the last marker's */
    bool stack;      /* the stage that the stack leaves */
    bool place;      /* the stage in whose source the sentence stands */
    bool says;       /* rests on what the engine itself says: nothing narrows it */
    double sure;
    oos_basis basis; /* NONE: that of its conditions */
    const char *id, *why;
    const json_t *of; /* what it says of one engine, by the engine's name; NULL: of all the same */
} phase_rule;

typedef struct cause_rule {
    oos_condition when;
    oos_phase phases[PHASES_MAX];
    size_t phase_count; /* 0: any */
    const char *cause;  /* or what an extra adds */
    const char *also[OOS_ALSO_MAX];
    size_t also_count;
    double sure;
    const char *id, *why, *ask;
    const json_t *of; /* as above */
} cause_rule;

enum { USUAL_MAX = 4 };
/* Below this a cause is a guess, and the usual ones of its stage are named beside it. */
#define GUESSED 0.6
#define PLACE_SURE 0.5
#define PLACE_RULE "says:source"

struct oos_cause_rules {
    phase_rule *phases;
    cause_rule *causes, *extras;
    size_t phase_count, cause_count, extra_count;
    const char *usual[OOS_PHASE_COUNT][USUAL_MAX]; /* causes of a stage, the most frequent first */
    const json_t *never;                           /* stages that an engine does not have, by its name */
};

/* What a rule says, in the words of the engine where it has its own. */
static const char *said_of(const json_t *of, const char *engine, const char *key, const char *otherwise)
{
    const json_t *own = engine ? json_object_get(json_object_get(of, engine), key) : NULL;
    return own ? json_string_value(own) : otherwise; /* null: the engine has nothing to say of it */
}

const char *oos_basis_word(oos_basis basis)
{
    static const char *const words[OOS_BASIS_COUNT] = {NULL,
#define WORD(name, word, words) word,
                                                       OOS_BASIS_MAP(WORD)
#undef WORD
    };
    return words[basis];
}

const char *oos_basis_words(oos_basis basis)
{
    static const char *const sentences[OOS_BASIS_COUNT] = {"",
#define WORDS(name, word, words) words,
                                                           OOS_BASIS_MAP(WORDS)
#undef WORDS
    };
    return sentences[basis];
}

static bool basis_named(const char *word, oos_basis *ret_basis)
{
    oos_basis basis = OOS_BASIS_SAID;
    while (basis < OOS_BASIS_COUNT && strcmp(word, oos_basis_word(basis)) != 0) basis++;
    *ret_basis = basis;
    return basis < OOS_BASIS_COUNT;
}

static oomsight_status phase_rule_read(const oos_signals *signals, const json_t *json, phase_rule *ret_rule,
                                       oomsight_error *reterr)
{
    const char *phase, *basis;
    phase_rule rule = {.phase = OOS_PHASE_COUNT, .id = "", .why = ""};
    if (!oos_json_str(json, "phase", &phase) || (phase[0] != '@' && !oos_phase_named(phase, &rule.phase)))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a rule without a phase");
    rule.stack = strcmp(phase, "@stack") == 0;
    rule.place = strcmp(phase, "@place") == 0;
    if (oos_json_str(json, "basis", &basis) && !basis_named(basis, &rule.basis))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a rule rests on '%s', which is no basis", basis);
    oos_json_bool(json, "says", &rule.says);
    oos_json_f64(json, "sure", &rule.sure);
    oos_json_str(json, "id", &rule.id);
    oos_json_str(json, "why", &rule.why);
    rule.of = json_object_get(json, "of");
    OOS_TRY(oos_condition_read(signals, json, &rule.when, reterr));
    *ret_rule = rule;
    return OOMSIGHT_OK;
}

static oomsight_status cause_rule_read(const oos_signals *signals, const json_t *json, const char *key,
                                       cause_rule *ret_rule, oomsight_error *reterr)
{
    cause_rule rule = {.id = "", .why = ""};
    if (!oos_json_str(json, key, &rule.cause))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a rule without a cause");
    const json_t *phases = json_object_get(json, "phase"), *also = json_object_get(json, "also");
    rule.phase_count = json_array_size(phases);
    rule.also_count = oos_min(json_array_size(also), OOS_ALSO_MAX);
    if (rule.phase_count > PHASES_MAX)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "too many phases in a rule");
    for (size_t i = 0; i < rule.phase_count; i++) {
        const char *word = json_string_value(json_array_get(phases, i));
        if (!word || !oos_phase_named(word, &rule.phases[i]))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "rule of '%s': no such phase", rule.cause);
    }
    for (size_t i = 0; i < rule.also_count; i++) {
        rule.also[i] = json_string_value(json_array_get(also, i));
        if (!rule.also[i]) return oos_fail(reterr, OOMSIGHT_MALFORMED, "rule of '%s': also", rule.cause);
    }
    oos_json_f64(json, "sure", &rule.sure);
    oos_json_str(json, "id", &rule.id);
    oos_json_str(json, "why", &rule.why);
    oos_json_str(json, "ask", &rule.ask);
    rule.of = json_object_get(json, "of");
    OOS_TRY(oos_condition_read(signals, json, &rule.when, reterr));
    *ret_rule = rule;
    return OOMSIGHT_OK;
}

static oomsight_status cause_rules_read(oos_arena *arena, const oos_signals *signals, const json_t *list,
                                        const char *key, cause_rule **ret_rules, size_t *ret_count,
                                        oomsight_error *reterr)
{
    size_t const count = json_array_size(list);
    cause_rule *rules = OOS_NEW_ARRAY(arena, cause_rule, count ? count : 1);
    if (!rules) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the rules");
    for (size_t i = 0; i < count; i++)
        OOS_TRY(cause_rule_read(signals, json_array_get(list, i), key, &rules[i], reterr));
    *ret_rules = rules;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status usual_causes_read(const json_t *object, oos_cause_rules *rules, oomsight_error *reterr)
{
    const char *word;
    json_t *list;
    json_object_foreach((json_t *)(uintptr_t)object, word, list)
    {
        oos_phase phase;
        if (!oos_phase_named(word, &phase) || json_array_size(list) > USUAL_MAX)
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "usual causes of '%s'", word);
        for (size_t i = 0; i < json_array_size(list); i++)
            rules->usual[phase][i] = json_string_value(json_array_get(list, i));
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_cause_rules_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                     const oos_cause_rules **ret_rules, oomsight_error *reterr)
{
    oos_view bytes;
    json_t *phases, *causes;
    OOS_TRY(oos_data_read(arena, data_dir, "explain/phases.json", &bytes, reterr));
    OOS_TRY(oos_json_load(arena, bytes, &phases, reterr));
    OOS_TRY(oos_data_read(arena, data_dir, "explain/causes.json", &bytes, reterr));
    OOS_TRY(oos_json_load(arena, bytes, &causes, reterr));

    oos_cause_rules *rules = OOS_NEW(arena, oos_cause_rules);
    const json_t *list = json_object_get(phases, "rules");
    size_t const count = json_array_size(list);
    if (rules) rules->phases = OOS_NEW_ARRAY(arena, phase_rule, count ? count : 1);
    if (!rules || !rules->phases) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the rules");
    rules->phase_count = count;
    for (size_t i = 0; i < count; i++)
        OOS_TRY(phase_rule_read(signals, json_array_get(list, i), &rules->phases[i], reterr));
    OOS_TRY(cause_rules_read(arena, signals, json_object_get(causes, "rules"), "cause", &rules->causes,
                             &rules->cause_count, reterr));
    OOS_TRY(cause_rules_read(arena, signals, json_object_get(causes, "extras"), "add", &rules->extras,
                             &rules->extra_count, reterr));
    rules->never = json_object_get(phases, "never");
    OOS_TRY(usual_causes_read(json_object_get(causes, "usual"), rules, reterr));
    *ret_rules = rules;
    return OOMSIGHT_OK;
}

static bool has(const oos_signals *signals, const oos_signal_set *set, const char *id)
{
    size_t const index = oos_signals_find(signals, id);
    return index != SIZE_MAX && oos_signal_has(set, index);
}

static const oos_signal *first_of(const oos_signals *signals, const oos_signal_set *set, oos_signal_kind kind)
{
    for (size_t i = 0; i < signals->count; i++)
        if (signals->list[i].kind == kind && oos_signal_has(set, i)) return &signals->list[i];
    return NULL;
}

/* The line that names the error may be cut off. Inside the dummy runs of the engine, which do nothing but allocate and
 * compute, that is most likely memory; anywhere else it is not said. */
static bool is_suspected(const oos_signals *signals, const oos_signal_set *set)
{
    if (first_of(signals, set, OOS_SIGNAL_FAULT) || has(signals, set, "frame.compile")) return false;
    /* Two functions of the engine fail for nothing else. */
    if (has(signals, set, "frame.kv_check") || has(signals, set, "frame.request_memory")) return true;
    return has(signals, set, "frame.dummy_sampler") ||
           (has(signals, set, "frame.profile_run") && has(signals, set, "frame.dummy_run"));
}

/* ---- which stages are possible at all */

#define BIT(name) OOS_PHASE_BIT(OOS_PHASE_##name)
#define SERVING (BIT(RUNTIME_PREFILL) | BIT(RUNTIME_SAMPLER) | BIT(RUNTIME_OTHER) | BIT(SLEEP_WAKE))
#define A_PROGRAMS                                                                                           \
    (BIT(ENV) | BIT(DISTRIBUTED_INIT) | BIT(WEIGHT_LOAD) | BIT(QUANT_POSTPROCESS) | BIT(RUNTIME_OTHER) |     \
     BIT(HOST_MEMORY))
#define ANYWHERE (OOS_PHASE_BIT(OOS_PHASE_NOT_OOM) - 1)

/* Stages that cannot be told apart by what came before them. */
static oos_phase order_of(oos_phase phase)
{
    static const oos_phase same[OOS_PHASE_COUNT] = {[OOS_PHASE_QUANT_POSTPROCESS] = OOS_PHASE_WEIGHT_LOAD,
                                                    [OOS_PHASE_MM_PROFILE] = OOS_PHASE_PROFILE_RUN,
                                                    [OOS_PHASE_CUDAGRAPH_PROFILE] = OOS_PHASE_PROFILE_RUN,
                                                    [OOS_PHASE_KV_ALLOC] = OOS_PHASE_KV_SIZING,
                                                    [OOS_PHASE_RUNTIME_SAMPLER] = OOS_PHASE_RUNTIME_PREFILL,
                                                    [OOS_PHASE_RUNTIME_OTHER] = OOS_PHASE_RUNTIME_PREFILL};
    return same[phase] ? same[phase] : phase;
}

/* What can still fail once `furthest` was reached. */
static oos_phase_set from_there_on(oos_phase furthest)
{
    oos_phase_set left = BIT(SLEEP_WAKE);
    for (oos_phase phase = OOS_PHASE_ENV; phase <= OOS_PHASE_RUNTIME_OTHER; phase++)
        if (order_of(phase) >= order_of(furthest)) left |= OOS_PHASE_BIT(phase);
    return left;
}

static void narrow(oos_phase_set *stages, bool holds, oos_phase_set to)
{
    if (holds && *stages & to) *stages &= to;
}

static bool has_fact(const oos_signal_set *set, oos_fact fact)
{
    return oos_signal_has(set, OOS_SIGNALS_MAX + (size_t)fact);
}

/* The engine said that it is up, or worked on requests. */
static bool was_serving(const oos_signals *signals, const oos_signal_set *set, const oos_incident *incident)
{
    return has(signals, set, "mark.ready") || incident->furthest == OOS_PHASE_RUNTIME_PREFILL ||
           incident->furthest == OOS_PHASE_RUNTIME_SAMPLER || incident->furthest == OOS_PHASE_RUNTIME_OTHER;
}

/* The stages that the frames leave. The line of source that logged them differs from build to build: an engine that is up outweighs it. */
static oos_phase_set stack_stages(const oos_incident *incident, bool up)
{
    oos_traceback stack = incident->stack;
    if (stack.ending) return 0;
    if (up) stack.logged = 0;
    return oos_traceback_stages(&stack);
}

/* An engine that measures nothing has no stage in which it does. */
static oos_phase_set stages_of(const oos_cause_rules *rules, const char *engine)
{
    const json_t *list = engine ? json_object_get(rules->never, engine) : NULL;
    oos_phase_set stages = ANYWHERE;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        oos_phase phase;
        if (word && oos_phase_named(word, &phase)) stages &= ~OOS_PHASE_BIT(phase);
    }
    return stages;
}

/* The stack first, then what the wrappers say, then how far the engine had got; what contradicts is left aside. */
static oos_phase_set possible(const oos_signals *signals, const oos_cause_rules *rules,
                              const oos_signal_set *set, const oos_incident *incident,
                              oos_phase_set *ret_stack)
{
    bool const up = was_serving(signals, set, incident);
    oos_phase_set stages = stages_of(rules, incident->engine), stack = stack_stages(incident, up);
    bool const serving = has(signals, set, "wrap.runtime") || has(signals, set, "mark.failed_step") ||
                         has(signals, set, "mark.failed_input") || has(signals, set, "mark.failed_stats") ||
                         has(signals, set, "frame.request");
    /* A program that is no server loads, runs and ends; where its frames say so it was making its context. */
    narrow(&stages, has_fact(set, OOS_FACT_program), A_PROGRAMS | (stack & BIT(INIT_FREE_MEMORY_CHECK)));
    /* While the engine is being made, whoever makes it, it does not serve. */
    narrow(&stages, has(signals, set, "frame.engine_init") && !serving && !has(signals, set, "mark.ready"),
           ANYWHERE & ~(oos_phase_set)SERVING);
    narrow(&stages, stack != 0, stack);
    /* What fails while everything is taken down is a consequence: it does not place anything. */
    if (incident->stack.ending)
        stages &= ~(oos_phase_set)(BIT(DISTRIBUTED_INIT) | BIT(INIT_FREE_MEMORY_CHECK));
    narrow(&stages, serving, SERVING);
    narrow(&stages, has(signals, set, "wrap.startup") && !serving, ANYWHERE & ~(oos_phase_set)SERVING);
    narrow(&stages, has(signals, set, "mark.ready"), SERVING);
    if (incident->furthest != OOS_PHASE_COUNT) narrow(&stages, true, from_there_on(incident->furthest));
    /* No weight and no part of the KV cache is larger than the device it was placed on. */
    narrow(&stages, has_fact(set, OOS_FACT_tried_gt_total) || has_fact(set, OOS_FACT_tried_huge),
           ANYWHERE & ~(oos_phase_set)(BIT(WEIGHT_LOAD) | BIT(QUANT_POSTPROCESS) | BIT(KV_ALLOC)));
    narrow(&stages, has_fact(set, OOS_FACT_text_model), ANYWHERE & ~(oos_phase_set)BIT(MM_PROFILE));
    *ret_stack = stack ? stages & stack : 0;
    return stages;
}

/* How many of 169 labelled reports of a lack of device memory, two public sets together, failed in a stage: the last resort. */
static const uint8_t usual[OOS_PHASE_COUNT] = {[OOS_PHASE_INIT_FREE_MEMORY_CHECK] = 10,
                                               [OOS_PHASE_DISTRIBUTED_INIT] = 6,
                                               [OOS_PHASE_WEIGHT_LOAD] = 17,
                                               [OOS_PHASE_QUANT_POSTPROCESS] = 7,
                                               [OOS_PHASE_PROFILE_RUN] = 13,
                                               [OOS_PHASE_MM_PROFILE] = 11,
                                               [OOS_PHASE_CUDAGRAPH_PROFILE] = 2,
                                               [OOS_PHASE_KV_SIZING] = 30,
                                               [OOS_PHASE_KV_ALLOC] = 10,
                                               [OOS_PHASE_COMPILE] = 1,
                                               [OOS_PHASE_CUDAGRAPH_CAPTURE] = 11,
                                               [OOS_PHASE_SAMPLER_WARMUP] = 10,
                                               [OOS_PHASE_RUNTIME_PREFILL] = 15,
                                               [OOS_PHASE_RUNTIME_SAMPLER] = 4,
                                               [OOS_PHASE_RUNTIME_OTHER] = 17,
                                               [OOS_PHASE_SLEEP_WAKE] = 5};

static oos_phase most_usual(oos_phase_set stages, double *ret_share)
{
    unsigned all = 0;
    oos_phase best = OOS_PHASE_UNKNOWN;
    for (oos_phase phase = 0; phase < OOS_PHASE_NOT_OOM; phase++) {
        if (!(stages & OOS_PHASE_BIT(phase))) continue;
        all += usual[phase];
        if (best == OOS_PHASE_UNKNOWN || usual[phase] > usual[best]) best = phase;
    }
    *ret_share = all ? (double)usual[best] / all : 0;
    return best;
}

static const char *stack_rule(oos_phase phase)
{
    static const char *const ids[] = {
#define PHASE(name, word, takes) "stack:" word,
#include "ledger/phase.def"
#undef PHASE
    };
    return ids[phase];
}

/* What a condition rests on. Of figures, those of the engine's own arithmetic speak of the stage only by their size. */
static oos_basis basis_of_fact(oos_fact fact)
{
    switch ((int)fact) {
    case OOS_FACT_last_marker:
    case OOS_FACT_serving_last:
    case OOS_FACT_read_on: return OOS_BASIS_MARK;
    case OOS_FACT_forward_past_kv:
    case OOS_FACT_served_forward:
    case OOS_FACT_start_forward:
    case OOS_FACT_served_runner: return OOS_BASIS_STACK;
    case OOS_FACT_kv_negative: return OOS_BASIS_SAID; /* printed as such */
    case OOS_FACT_program:
    case OOS_FACT_server:
    case OOS_FACT_torch_known:
    case OOS_FACT_has_figures: return OOS_BASIS_USUAL; /* what speaks, not what it says */
    default: return OOS_BASIS_FIGURES;
    }
}

static oos_basis basis_of_signal(const oos_signals *signals, size_t index)
{
    if (index >= OOS_SIGNALS_MAX) return basis_of_fact((oos_fact)(index - OOS_SIGNALS_MAX));
    oos_signal_kind const kind = signals->list[index].kind;
    if (kind == OOS_SIGNAL_FRAME) return OOS_BASIS_STACK;
    if (kind == OOS_SIGNAL_MARKER || kind == OOS_SIGNAL_START || kind == OOS_SIGNAL_READY ||
        kind == OOS_SIGNAL_WRAPPER)
        return OOS_BASIS_MARK;
    bool const aside = kind == OOS_SIGNAL_ENGINE || kind == OOS_SIGNAL_HINT || kind == OOS_SIGNAL_SETUP;
    return aside ? OOS_BASIS_USUAL : OOS_BASIS_SAID;
}

static oos_basis weaker(oos_basis one, oos_basis other)
{
    return one > other ? one : other;
}

/* The weakest of what a rule needs; of what may stand for each other, the best that is there. */
static oos_basis basis_of(const oos_signals *signals, const phase_rule *rule, const oos_signal_set *set)
{
    const oos_condition *when = &rule->when;
    oos_basis basis = OOS_BASIS_NONE, best = OOS_BASIS_COUNT;
    if (rule->basis) return rule->basis;
    if (rule->stack) return OOS_BASIS_STACK;
    for (size_t i = 0; i < when->all_count; i++)
        basis = weaker(basis, basis_of_signal(signals, when->all[i]));
    for (size_t i = 0; i < when->any_count; i++)
        if (oos_signal_has(set, when->any[i]) && basis_of_signal(signals, when->any[i]) < best)
            best = basis_of_signal(signals, when->any[i]);
    if (when->any_count) basis = weaker(basis, best);
    if (rule->says && (basis == OOS_BASIS_NONE || basis == OOS_BASIS_MARK)) return OOS_BASIS_SAID;
    return basis == OOS_BASIS_NONE ? OOS_BASIS_USUAL : basis;
}

static void set_phase(oos_incident *incident, oos_phase phase, oos_basis basis, double sure, const char *why,
                      const char *rule)
{
    incident->phase = phase;
    incident->basis = basis;
    incident->phase_sure = sure;
    incident->phase_why = why;
    incident->phase_rule = rule;
}

/* A rule that names the frame which speaks for a stage says more than that the stack does. */
static const phase_rule *named_frame(const oos_cause_rules *rules, const oos_signal_set *set, oos_phase phase)
{
    for (size_t i = 0; i < rules->phase_count; i++) {
        const phase_rule *rule = &rules->phases[i];
        if (rule->phase == phase && strcmp(rule->id, stack_rule(phase)) == 0 &&
            oos_condition_holds(&rule->when, set))
            return rule;
    }
    return NULL;
}

/* Where an allocation failed it was not arithmetic that refused. */
static bool asked_device(const oos_signals *signals, const oos_signal_set *set)
{
    return has(signals, set, "torch.oom") || has(signals, set, "torch.words") ||
           has(signals, set, "cuda.error");
}

static bool find_phase(const oos_signals *signals, const oos_cause_rules *rules, const oos_signal_set *found,
                       oos_incident *incident)
{
    oos_phase_set stack;
    oos_phase_set const stages = possible(signals, rules, found, incident, &stack);
    oos_signal_set with = *found;
    const oos_signal_set *set = &with;
    if (stack && !(stack & SERVING) && incident->stack.forward)
        oos_signal_add(&with, OOS_SIGNALS_MAX + OOS_FACT_start_forward);
    if (stack && !(stack & ~(oos_phase_set)SERVING)) {
        if (incident->stack.forward)
            oos_signal_add(&with, OOS_SIGNALS_MAX + OOS_FACT_served_forward);
        else if (incident->stack.worker && incident->stack.closed)
            oos_signal_add(&with, OOS_SIGNALS_MAX + OOS_FACT_served_runner);
    }
    bool const decided = stack && !(stack & (stack - 1));
    for (size_t i = 0; i < rules->phase_count; i++) {
        const phase_rule *rule = &rules->phases[i];
        if (!oos_condition_holds(&rule->when, set)) continue;
        if (rule->stack) {
            if (!decided) continue;
            oos_phase const phase = (oos_phase)__builtin_ctz(stack);
            const phase_rule *named = named_frame(rules, set, phase);
            if (named) rule = named;
            set_phase(incident, phase, OOS_BASIS_STACK, rules->phases[i].sure,
                      said_of(rule->of, incident->engine, "why", rule->why), stack_rule(phase));
            return true;
        }
        const oos_signal *place = rule->place ? first_of(signals, set, OOS_SIGNAL_PLACE) : NULL;
        oos_phase phase = rule->place                      ? (place ? place->phase : OOS_PHASE_COUNT)
                          : rule->phase == OOS_PHASE_COUNT ? incident->furthest
                                                           : rule->phase;
        if (!rule->place && rule->phase == OOS_PHASE_COUNT && phase == OOS_PHASE_KV_SIZING &&
            asked_device(signals, set))
            phase = OOS_PHASE_KV_ALLOC;
        if (phase == OOS_PHASE_COUNT || (!rule->says && !(stages & OOS_PHASE_BIT(phase)))) continue;
        set_phase(incident, phase, basis_of(signals, rule, set), rule->sure,
                  said_of(rule->of, incident->engine, "why", rule->why), rule->id);
        return true;
    }
    /* The kernel's log has a clock and an order of its own. */
    if (stages == stages_of(rules, incident->engine) || stages == A_PROGRAMS || incident->stack.ending ||
        has(signals, set, "nvrm.oom"))
        return false;
    double share;
    oos_phase_set left = stack ? stack : stages;
    narrow(&left, asked_device(signals, set), ANYWHERE & ~(oos_phase_set)BIT(KV_SIZING));
    oos_phase const phase = most_usual(left, &share);
    set_phase(incident, phase, OOS_BASIS_USUAL, 0.8 * share,
              "the most usual of the stages that the text leaves", "usual");
    return true;
}

static bool is_program_set(const oos_signal_set *set)
{
    return has_fact(set, OOS_FACT_program);
}

/* Of servers that share the card out beforehand; another program has no such setting. */
static bool is_servers(const char *cause)
{
    static const char *const causes[] = {"gmu_too_low",
                                         "gmu_too_high_leaves_no_headroom",
                                         "cudagraph_overestimated",
                                         "cudagraph_unbudgeted",
                                         "profiling_accounting_bug",
                                         "runtime_workspace_unprofiled",
                                         "context_too_long_for_kv"};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strcmp(cause, causes[i]) == 0) return true;
    return false;
}

/* What the printed figures rule out, whichever rule would name it. */
static bool is_refuted(const char *cause, const oos_signal_set *set)
{
    bool const above_all = has_fact(set, OOS_FACT_tried_gt_total) || has_fact(set, OOS_FACT_tried_huge);
    bool const room = has_fact(set, OOS_FACT_pool_le_free), given = has_fact(set, OOS_FACT_kv_given_large);
    const struct {
        bool holds;
        const char *cause;
    } refuted[] = {
        /* Nothing that makes room gives more than the device has. */
        {above_all, "gmu_too_high_leaves_no_headroom"},
        {above_all, "other_process_holds_memory"},
        {above_all, "fragmentation"},
        {room, "context_too_long_for_kv"},
        {room, "gmu_too_low"},
        /* No budget enters a cache whose size was given. */
        {given, "gmu_too_high_leaves_no_headroom"},
        {given, "gmu_too_low"},
        {has_fact(set, OOS_FACT_text_model), "mm_encoder_peak"},
    };
    for (size_t i = 0; i < sizeof refuted / sizeof *refuted; i++)
        if (refuted[i].holds && strcmp(cause, refuted[i].cause) == 0) return true;
    return false;
}

static bool applies(const cause_rule *rule, const oos_signal_set *set, oos_phase phase)
{
    bool here = rule->phase_count == 0;
    if ((is_program_set(set) && is_servers(rule->cause)) || is_refuted(rule->cause, set)) return false;
    for (size_t i = 0; i < rule->phase_count; i++) here |= rule->phases[i] == phase;
    return here && oos_condition_holds(&rule->when, set);
}

static void add_also(oos_incident *incident, const char *cause, const oos_signal_set *set)
{
    if ((is_program_set(set) && is_servers(cause)) || is_refuted(cause, set)) return;
    if (incident->also_count == OOS_ALSO_MAX || strcmp(incident->cause, cause) == 0) return;
    for (size_t i = 0; i < incident->also_count; i++)
        if (strcmp(incident->also[i], cause) == 0) return;
    incident->also[incident->also_count++] = cause;
}

static void find_cause(const oos_signals *signals, const oos_cause_rules *rules, const oos_signal_set *set,
                       oos_incident *incident)
{
    const oos_signal *place = first_of(signals, set, OOS_SIGNAL_PLACE);
    const cause_rule *found = NULL;
    bool const program = is_program_set(set);
    for (size_t i = 0; i < rules->cause_count && !found; i++)
        if (applies(&rules->causes[i], set, incident->phase)) found = &rules->causes[i];
    incident->cause = found ? found->cause : "insufficient_info";
    incident->cause_sure = found ? found->sure : 0.2;
    incident->cause_why = found ? said_of(found->of, incident->engine, "why", found->why) : "";
    incident->cause_rule = found ? found->id : "";
    incident->ask = found ? said_of(found->of, incident->engine, "ask", found->ask) : NULL;
    /* Where the place alone gave the stage, it gives the cause, too. */
    if (place && place->cause && strcmp(incident->phase_rule, PLACE_RULE) == 0 &&
        !(program && is_servers(place->cause))) {
        const char *before = incident->cause;
        incident->cause = place->cause;
        incident->cause_sure = PLACE_SURE;
        incident->cause_why = "the source of the sentence shows what it was for";
        incident->cause_rule = place->id;
        if (strcmp(before, "insufficient_info") != 0) add_also(incident, before, set);
    }
    for (size_t i = 0; i < rules->extra_count; i++)
        if (applies(&rules->extras[i], set, incident->phase)) add_also(incident, rules->extras[i].cause, set);
    incident->also_shown = incident->also_count;
    for (size_t i = 0; found && i < found->also_count; i++) add_also(incident, found->also[i], set);
    for (size_t i = 0; incident->cause_sure < GUESSED && i < USUAL_MAX; i++)
        if (rules->usual[incident->phase][i]) add_also(incident, rules->usual[incident->phase][i], set);
}

static const char *engine_of(const oos_signals *signals, const oos_incident *incident,
                             const oos_signal_set *set)
{
    /* A specific engine before vLLM, whose name also appears in the paths of its descendants. */
    const char *found = NULL;
    for (size_t i = 0; i < signals->count; i++) {
        const oos_signal *signal = &signals->list[i];
        if (signal->kind != OOS_SIGNAL_ENGINE || !oos_signal_has(set, i) || signal->vague) continue;
        const char *name = signal->id + strlen("engine.");
        bool const library =
            strcmp(name, "transformers") == 0; /* vLLM runs models of it, and not the other way round */
        bool const general = found && strcmp(found, oos_engine_default->name) == 0;
        if (!found || (general && !library) || strcmp(found, "transformers") == 0) found = name;
    }
    for (size_t i = 0; i < signals->count && !found; i++)
        if (signals->list[i].engine && oos_signal_has(set, i)) found = signals->list[i].engine;
    if (found) return found;
    if (incident->v1) return oos_engine_default->name;
    if (has(signals, set, "engine.pytorch")) return "pytorch";
    return first_of(signals, set, OOS_SIGNAL_OOM) && has(signals, set, "torch.oom") ? "pytorch" : NULL;
}

/* The frames of a program that is no engine are there, so it is not a bare message of one either. */
static bool is_program(const oos_signals *signals, const oos_signal_set *set, const char *engine)
{
    if (engine && strcmp(engine, "transformers") == 0) return true;
    if (engine && strcmp(engine, "pytorch") != 0) return false;
    if (has(signals, set, "frame.request")) return false;
    return has(signals, set, "engine.pytorch") || has(signals, set, "frame.file") ||
           has(signals, set, "frame.train") || has(signals, set, "torch.old") ||
           has(signals, set, "torch.async");
}

/* The first that names its reason, else the first. */
static const oos_signal *fault_of(const oos_signals *signals, const oos_signal_set *set)
{
    const oos_signal *found = NULL;
    for (size_t i = 0; i < signals->count; i++) {
        const oos_signal *signal = &signals->list[i];
        if (signal->kind != OOS_SIGNAL_FAULT || !oos_signal_has(set, i)) continue;
        if (!found || (found->vague && !signal->vague)) found = signal;
    }
    return found;
}

static void quiet(oos_incident *incident, oos_phase phase, const char *cause, double sure, const char *ask)
{
    incident->phase = phase;
    incident->cause = cause;
    incident->phase_sure = incident->cause_sure = sure;
    incident->ask = ask;
}

/* Nothing went wrong, or the log does not say so. "Healthy" needs a sign of it. */
static void conclude_quiet(const oos_signals *signals, const oos_cause_rules *rules,
                           const oos_signal_set *set, oos_incident *incident)
{
    const oos_signal *fault = fault_of(signals, set);
    bool const captured = has(signals, set, "mark.captured") || first_of(signals, set, OOS_SIGNAL_READY);
    if (fault) {
        incident->verdict_rule = fault->id;
        quiet(incident, OOS_PHASE_NOT_OOM, fault->cause ? fault->cause : "insufficient_info",
              fault->vague ? VAGUE_SURE : NAMED_SURE, fault->ask);
        incident->phase_why = "the failure named in the log is not about memory";
        if (fault->why) {
            incident->phase_why = "the text does not show whether memory is the reason";
            incident->cause_why = fault->why;
            incident->phase_sure = incident->cause_sure = 0.3;
        }
    } else if (incident->failed) {
        quiet(incident, OOS_PHASE_NOT_OOM, "insufficient_info", 0.3,
              "the last lines of the traceback, which name the error");
        if (find_phase(signals, rules, set, incident)) {
            incident->phase_sure *= 0.6;
            for (size_t i = 0; i < USUAL_MAX && rules->usual[incident->phase][i]; i++)
                add_also(incident, rules->usual[incident->phase][i], set);
        } else
            incident->phase = OOS_PHASE_NOT_OOM;
    } else if (oos_signal_has(set, OOS_SIGNALS_MAX + OOS_FACT_sleep_residue)) {
        quiet(incident, OOS_PHASE_SLEEP_WAKE, "sleep_wake_competitor", 0.4,
              "what followed: wake-up maps the memory again");
        incident->basis = OOS_BASIS_FIGURES;
    } else if (incident->last_marker == OOS_PHASE_CUDAGRAPH_CAPTURE && !captured) {
        quiet(incident, incident->last_marker, "insufficient_info", 0.4,
              "what followed: the log stops inside graph capture");
        incident->basis = OOS_BASIS_MARK;
    } else if (!captured && incident->furthest < OOS_PHASE_KV_SIZING && incident->furthest > OOS_PHASE_ENV) {
        quiet(incident, incident->furthest, "insufficient_info", 0.4,
              "how the process ended: its exit code, and dmesg of the host");
        incident->phase_why = "the last phase that the log shows";
        incident->basis = OOS_BASIS_MARK;
        incident->phase_sure = NAMED_SURE;
    } else if (captured || first_of(signals, set, OOS_SIGNAL_MARKER)) {
        quiet(incident, OOS_PHASE_NOT_OOM, "healthy_log", captured ? NAMED_SURE : 0.6, NULL);
    } else {
        quiet(incident, OOS_PHASE_NOT_OOM, "insufficient_info", 0.2, "the lines in which it failed");
    }
}

/* What follows from something else in the text says nothing of its own: an engine that kills its own processes prints "Killed". */
static void drop_consequences(const oos_signals *signals, oos_signal_set *set)
{
    for (size_t i = 0; i < signals->count; i++)
        if (signals->list[i].unless && oos_signal_has(set, i) && has(signals, set, signals->list[i].unless))
            oos_signal_remove(set, i);
}

static const oos_signal *first_said(const oos_signals *signals, const oos_signal_set *set)
{
    static const oos_signal_kind kinds[] = {OOS_SIGNAL_OOM, OOS_SIGNAL_REFUSAL, OOS_SIGNAL_PART,
                                            OOS_SIGNAL_HOST};
    const oos_signal *said = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !said; i++)
        said = first_of(signals, set, kinds[i]);
    return said;
}

/* Rules that are as often wrong as right name nothing: the answer is "unknown", and what would decide it. */
#define TELLING 0.4

static bool abstain_from_phase(oos_incident *incident)
{
    if (incident->phase_sure >= TELLING) return true;
    incident->phase = OOS_PHASE_UNKNOWN;
    incident->basis = OOS_BASIS_NONE;
    return false;
}

/* What was suggested stays as possible. */
static void abstain_from_cause(oos_incident *incident, const oos_signal_set *set)
{
    const char *suggested = incident->cause;
    if (incident->cause_sure >= TELLING || strcmp(suggested, "insufficient_info") == 0) return;
    incident->cause = "insufficient_info";
    /* The reason of a cause that is not named is not told either: a headline made of it would be a second cause. */
    incident->cause_why = "the text does not decide between the causes that are possible";
    if (incident->also_count == OOS_ALSO_MAX) incident->also_count--;
    add_also(incident, suggested, set);
    if (!incident->ask) incident->ask = "the full log from the start of the engine";
}

/* The likeliest of `stages` that is not in the set yet. A program that shares nothing out beforehand fails while it works or loads. */
static oos_phase next_stage(oos_phase_set stages, bool server)
{
    static const oos_phase others[] = {OOS_PHASE_RUNTIME_OTHER, OOS_PHASE_WEIGHT_LOAD,
                                       OOS_PHASE_RUNTIME_PREFILL};
    double share;
    for (size_t i = 0; !server && i < sizeof others / sizeof *others; i++)
        if (stages & OOS_PHASE_BIT(others[i])) return others[i];
    return most_usual(stages, &share);
}

static void add_stage(oos_incident *incident, oos_phase phase, oos_phase_set *left)
{
    incident->phases[incident->phase_count++] = phase;
    *left &= ~OOS_PHASE_BIT(phase);
}

/* What tells the stages of a set apart, unless the text has it. */
static const char *question_of(const oos_incident *incident, bool server)
{
    oos_phase_set set = 0;
    for (size_t i = 0; i < incident->phase_count; i++) set |= OOS_PHASE_BIT(incident->phases[i]);
    if (set & SERVING && set & ~(oos_phase_set)SERVING)
        return server ? "had it answered a request before it failed?"
                      : "had the model been loaded when it failed?";
    if (!incident->stack.count) return "which functions does the traceback above the message name?";
    if (incident->furthest == OOS_PHASE_COUNT)
        return "what is the last line that it printed before it failed?";
    return incident->setup.command || incident->setup.args ? NULL : "with which command was it started?";
}

/* What was read names one stage. What figures fit, or what is usual, does not: then all that the text leaves are named, three at most. */
static void name_stages(const oos_signals *signals, const oos_cause_rules *rules, const oos_signal_set *set,
                        oos_incident *incident)
{
    oos_phase_set stack, left = possible(signals, rules, set, incident, &stack);
    bool const server = has_fact(set, OOS_FACT_server), known = incident->phase != OOS_PHASE_UNKNOWN;
    narrow(&left, stack != 0, stack);
    narrow(&left, asked_device(signals, set), ANYWHERE & ~(oos_phase_set)(BIT(KV_SIZING) | BIT(HOST_MEMORY)));
    incident->phase_count = 0;
    incident->question = NULL;
    if (known) add_stage(incident, incident->phase, &left);
    if (known && incident->basis < OOS_BASIS_FIGURES) return;
    while (left && incident->phase_count < OOS_STAGES_MAX) {
        oos_phase const next = next_stage(left, server);
        if (next == OOS_PHASE_UNKNOWN) break;
        add_stage(incident, next, &left);
    }
    if (incident->phase_count > 1) incident->question = question_of(incident, server);
}

void oos_reason(const oos_signals *signals, const oos_cause_rules *rules, oos_incident *incident)
{
    oos_signal_set set = incident->signals;
    drop_consequences(signals, &set);
    oos_facts_find(incident, &set);
    incident->engine = engine_of(signals, incident, &set);
    if ((incident->engine && oos_engine_is_server(incident->engine)))
        oos_signal_add(&set, OOS_SIGNALS_MAX + OOS_FACT_server);
    incident->program = is_program(signals, &set, incident->engine);
    if (incident->program) oos_signal_add(&set, OOS_SIGNALS_MAX + OOS_FACT_program);
    incident->phase = OOS_PHASE_UNKNOWN;
    incident->basis = OOS_BASIS_NONE;
    incident->phase_count = 0;
    incident->question = NULL;
    incident->phase_why = incident->cause_why = "";
    incident->phase_rule = incident->cause_rule = incident->verdict_rule = "";
    const oos_signal *said = first_said(signals, &set);
    bool const stated = said;
    /* A cache below zero bytes is refused by the very next call; models without a cache go on and say so. */
    bool const below_zero = oos_known(incident, OOS_NUMBER_kv_available) &&
                            incident->numbers[OOS_NUMBER_kv_available].negative &&
                            !was_serving(signals, &set, incident) && !has(signals, &set, "mark.captured");
    bool const refused = has_fact(&set, OOS_FACT_kv_negative) && (incident->failed || below_zero);
    incident->is_oom = stated || refused || is_suspected(signals, &set);
    incident->verdict_rule = said               ? said->id
                             : refused          ? "fact.kv_negative"
                             : incident->is_oom ? "suspected"
                                                : "";
    if (incident->is_oom) {
        bool const suspected = !stated && !refused;
        if (!find_phase(signals, rules, &set, incident)) {
            incident->phase_sure = 0.2;
            incident->phase_why = "nothing in the text shows a stage";
        }
        if (suspected) incident->phase_sure *= 0.6;
        bool const placed = abstain_from_phase(incident);
        name_stages(signals, rules, &set, incident);
        find_cause(signals, rules, &set, incident);
        if (suspected) incident->cause_sure *= 0.6;
        abstain_from_cause(incident, &set);
        if (!placed && !incident->ask)
            incident->ask = "the lines before the failure, from the start of the engine";
        if (suspected) incident->ask = "the last lines of the traceback, which name the error";
    } else {
        conclude_quiet(signals, rules, &set, incident);
    }
    incident->confidence =
        incident->phase_sure < incident->cause_sure ? incident->phase_sure : incident->cause_sure;
}
