/* The rules, and the order in which they are asked: is it memory at all, where, why. */
#include "facts/facts.h"
#include "explain/explain.h"
#include "base/json.h"

/* An exception that names no reason is no proof that it was not memory. */
#define VAGUE_SURE 0.45
#define NAMED_SURE 0.8

/* What a cause rests on, and so how often it is right: measured over all reports (tools/check_certainty.py). */
typedef enum trust { TRUST_NONE, TRUST_USUAL, TRUST_FEW, TRUST_SHOWN, TRUST_COUNT } trust;
static const char *const trust_words[TRUST_COUNT] = {"none", "usual", "few", "shown"};

typedef struct cause_rule {
    oos_condition when;
    oos_phase_set phases; /* 0: any */
    const char *cause;    /* or what an extra adds */
    const char *also[OOS_ALSO_MAX];
    size_t also_count;
    trust level;
    const char *id, *why, *ask;
    const json_t *of; /* as above */
} cause_rule;

typedef struct rule_list {
    cause_rule *rules;
    size_t count;
} rule_list;

typedef struct refutation {
    oos_condition when;
    const json_t *causes;
} refutation;

enum { USUAL_MAX = 4 };

struct oos_cause_rules {
    const oos_stage_rules *stages;
    rule_list causes, extras, doubts;
    refutation *refutations;
    size_t refutation_count;
    double sure[TRUST_COUNT];
    const char *usual[OOS_PHASE_COUNT][USUAL_MAX]; /* causes of a stage, the most frequent first */
};

/* What a rule says, in the words of the engine where it has its own. */
static const char *said_of(const json_t *of, const char *engine, const char *key, const char *otherwise)
{
    const json_t *own = engine ? json_object_get(json_object_get(of, engine), key) : NULL;
    return own ? json_string_value(own) : otherwise; /* null: the engine has nothing to say of it */
}

static oomsight_status trust_read(const json_t *rule, trust *ret_level, oomsight_error *reterr)
{
    const char *word = json_string_value(json_object_get(rule, "level"));
    if (!word) return OOMSIGHT_OK; /* an extra is not named for itself */
    for (size_t i = 0; i < TRUST_COUNT; i++) {
        if (strcmp(word, trust_words[i]) != 0) continue;
        *ret_level = (trust)i;
        return OOMSIGHT_OK;
    }
    return oos_fail(reterr, OOMSIGHT_MALFORMED, "no such level: '%s'", word);
}

static oomsight_status cause_rule_read(const oos_signals *signals, const json_t *json, const char *key,
                                       cause_rule *ret_rule, oomsight_error *reterr)
{
    cause_rule rule = {.id = "", .why = ""};
    if (!oos_json_str(json, key, &rule.cause))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a rule without a cause");
    const json_t *phases = json_object_get(json, "phase"), *also = json_object_get(json, "also");
    rule.also_count = oos_min(json_array_size(also), OOS_ALSO_MAX);
    OOS_TRY(oos_stages_read(phases, &rule.phases, reterr));
    for (size_t i = 0; i < rule.also_count; i++) {
        rule.also[i] = json_string_value(json_array_get(also, i));
        if (!rule.also[i]) return oos_fail(reterr, OOMSIGHT_MALFORMED, "rule of '%s': also", rule.cause);
    }
    OOS_TRY(trust_read(json, &rule.level, reterr));
    oos_json_str(json, "id", &rule.id);
    oos_json_str(json, "why", &rule.why);
    oos_json_str(json, "ask", &rule.ask);
    rule.of = json_object_get(json, "of");
    OOS_TRY(oos_condition_read(signals, json, &rule.when, reterr));
    *ret_rule = rule;
    return OOMSIGHT_OK;
}

/* The lists of `keys` one behind the other. */
static oomsight_status cause_rules_read(oos_arena *arena, const oos_signals *signals, const json_t *root,
                                        const char *const *keys, const char *cause, rule_list *ret_list,
                                        oomsight_error *reterr)
{
    size_t room = 1, count = 0;
    for (const char *const *key = keys; *key; key++) room += json_array_size(json_object_get(root, *key));
    cause_rule *rules = OOS_NEW_ARRAY(arena, cause_rule, room);
    if (!rules) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the rules");
    for (const char *const *key = keys; *key; key++) {
        const json_t *list = json_object_get(root, *key);
        for (size_t i = 0; i < json_array_size(list); i++)
            OOS_TRY(cause_rule_read(signals, json_array_get(list, i), cause, &rules[count++], reterr));
    }
    *ret_list = (rule_list){rules, count};
    return OOMSIGHT_OK;
}

static oomsight_status refutations_read(oos_arena *arena, const oos_signals *signals, const json_t *list,
                                        oos_cause_rules *rules, oomsight_error *reterr)
{
    rules->refutation_count = json_array_size(list);
    rules->refutations = OOS_NEW_ARRAY(arena, refutation, rules->refutation_count + 1);
    if (!rules->refutations) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the rules");
    for (size_t i = 0; i < rules->refutation_count; i++) {
        const json_t *row = json_array_get(list, i), *cause;
        size_t at;
        rules->refutations[i].causes = json_object_get(row, "causes");
        OOS_TRY(oos_condition_read(signals, row, &rules->refutations[i].when, reterr));
        json_array_foreach(rules->refutations[i].causes, at, cause)
        {
            if (!json_is_string(cause))
                return oos_fail(reterr, OOMSIGHT_MALFORMED, "what refutes a cause names causes");
        }
    }
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
    /* What a sentence or a frame names, arithmetic that overrides what is usual, and what is usual in a stage. */
    static const char *const order[] = {"sentences", "frames", "rules", "stages", NULL},
                             *const extras[] = {"extras", NULL}, *const doubts[] = {"doubts", NULL};
    json_t *causes;
    OOS_TRY(oos_data_json(arena, data_dir, "explain/causes.json", &causes, reterr));
    oos_cause_rules *rules = OOS_NEW(arena, oos_cause_rules);
    if (!rules) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the rules");
    OOS_TRY(oos_stage_rules_load(arena, data_dir, signals, &rules->stages, reterr));
    OOS_TRY(cause_rules_read(arena, signals, causes, order, "cause", &rules->causes, reterr));
    OOS_TRY(cause_rules_read(arena, signals, causes, extras, "add", &rules->extras, reterr));
    OOS_TRY(cause_rules_read(arena, signals, causes, doubts, "cause", &rules->doubts, reterr));
    OOS_TRY(refutations_read(arena, signals, json_object_get(causes, "refuted"), rules, reterr));
    OOS_TRY(usual_causes_read(json_object_get(causes, "usual"), rules, reterr));
    for (size_t i = 0; i < TRUST_COUNT; i++)
        oos_json_f64(json_object_get(causes, "sure"), trust_words[i], &rules->sure[i]);
    *ret_rules = rules;
    return OOMSIGHT_OK;
}

/* The line that names the error may be cut off. Inside the dummy runs of the engine, which do nothing but allocate and
 * compute, that is most likely memory; anywhere else it is not said. */
static bool is_suspected(const oos_signals *signals, const oos_signal_set *set)
{
    if (oos_signals_first(signals, set, OOS_SIGNAL_FAULT) || oos_signals_have(signals, set, "frame.compile"))
        return false;
    /* Two functions of the engine fail for nothing else. */
    if (oos_signals_have(signals, set, "frame.kv_check") ||
        oos_signals_have(signals, set, "frame.request_memory"))
        return true;
    return oos_signals_have(signals, set, "frame.dummy_sampler") ||
           (oos_signals_have(signals, set, "frame.profile_run") &&
            oos_signals_have(signals, set, "frame.dummy_run"));
}

/* What the text or its figures rule out, whichever rule would name it. */
static bool is_refuted(const oos_cause_rules *rules, const char *cause, const oos_signal_set *set)
{
    for (size_t i = 0; i < rules->refutation_count; i++) {
        const refutation *by = &rules->refutations[i];
        for (size_t k = 0; k < json_array_size(by->causes); k++)
            if (strcmp(cause, json_string_value(json_array_get(by->causes, k))) == 0 &&
                oos_condition_holds(&by->when, set))
                return true;
    }
    return false;
}

static bool applies(const oos_cause_rules *rules, const cause_rule *rule, const oos_signal_set *set,
                    oos_phase phase)
{
    bool const here = !rule->phases || rule->phases & OOS_PHASE_BIT(phase);
    return here && !is_refuted(rules, rule->cause, set) && oos_condition_holds(&rule->when, set);
}

static void add_also(const oos_cause_rules *rules, oos_incident *incident, const char *cause,
                     const oos_signal_set *set)
{
    if (is_refuted(rules, cause, set)) return;
    if (incident->also_count == OOS_ALSO_MAX || strcmp(incident->cause, cause) == 0) return;
    for (size_t i = 0; i < incident->also_count; i++)
        if (strcmp(incident->also[i], cause) == 0) return;
    incident->also[incident->also_count++] = cause;
}

static const cause_rule *first_of(const oos_cause_rules *rules, const rule_list *list,
                                  const oos_signal_set *set, oos_phase phase)
{
    for (size_t i = 0; i < list->count; i++)
        if (applies(rules, &list->rules[i], set, phase)) return &list->rules[i];
    return NULL;
}

static void find_cause(const oos_cause_rules *rules, const oos_signal_set *set, const oos_signal *place,
                       oos_incident *incident)
{
    const cause_rule *found = first_of(rules, &rules->causes, set, incident->phase);
    trust level = found ? found->level : TRUST_NONE;
    incident->cause = found ? found->cause : "insufficient_info";
    incident->cause_why = found ? said_of(found->of, incident->engine, "why", found->why) : "";
    incident->cause_rule = found ? found->id : "";
    incident->ask = found ? said_of(found->of, incident->engine, "ask", found->ask) : NULL;
    /* Where the place alone gave the stage, it gives the cause, too. */
    if (place && place->kind == OOS_SIGNAL_PLACE && place->cause && !is_refuted(rules, place->cause, set)) {
        const char *before = incident->cause;
        incident->cause = place->cause;
        level = TRUST_SHOWN;
        incident->cause_why = "the source of the sentence shows what it was for";
        incident->cause_rule = place->id;
        if (strcmp(before, "insufficient_info") != 0) add_also(rules, incident, before, set);
    }
    for (size_t i = 0; i < rules->extras.count; i++)
        if (applies(rules, &rules->extras.rules[i], set, incident->phase))
            add_also(rules, incident, rules->extras.rules[i].cause, set);
    incident->also_shown = incident->also_count;
    for (size_t i = 0; found && i < found->also_count; i++) add_also(rules, incident, found->also[i], set);
    incident->cause_sure = rules->sure[level];
    for (size_t i = 0; level <= TRUST_USUAL && i < USUAL_MAX; i++)
        if (rules->usual[incident->phase][i])
            add_also(rules, incident, rules->usual[incident->phase][i], set);
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
    if (oos_signals_have(signals, set, "engine.pytorch")) return "pytorch";
    return oos_signals_first(signals, set, OOS_SIGNAL_OOM) && oos_signals_have(signals, set, "torch.oom")
               ? "pytorch"
               : NULL;
}

/* The frames of a program that is no engine are there, so it is not a bare message of one either. */
static bool is_program(const oos_signals *signals, const oos_signal_set *set, const char *engine)
{
    if (engine && strcmp(engine, "transformers") == 0) return true;
    if (engine && strcmp(engine, "pytorch") != 0) return false;
    if (oos_signals_have(signals, set, "frame.request")) return false;
    return oos_signals_have(signals, set, "engine.pytorch") || oos_signals_have(signals, set, "frame.file") ||
           oos_signals_have(signals, set, "frame.train") || oos_signals_have(signals, set, "torch.old") ||
           oos_signals_have(signals, set, "torch.async") || oos_signals_have(signals, set, "mps.oom");
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
    bool const captured =
        oos_signals_have(signals, set, "mark.captured") || oos_signals_first(signals, set, OOS_SIGNAL_READY);
    if (fault) {
        incident->verdict_rule = fault->id;
        quiet(incident, OOS_PHASE_NOT_OOM, fault->cause ? fault->cause : "insufficient_info",
              fault->vague ? VAGUE_SURE : NAMED_SURE, fault->ask);
        incident->phase_why = "the failure named in the log is not about memory";
        if (fault->why) {
            incident->phase_why = "the text does not show whether memory is the reason";
            incident->cause_why = fault->why;
            incident->phase_sure = incident->cause_sure = 0.3;
            const cause_rule *doubt = first_of(rules, &rules->doubts, set, incident->phase);
            if (doubt) {
                incident->cause_why = doubt->why;
                incident->ask = doubt->ask;
                add_also(rules, incident, doubt->cause, set);
            }
        }
    } else if (incident->failed) {
        quiet(incident, OOS_PHASE_NOT_OOM, "insufficient_info", 0.3,
              "the last lines of the traceback, which name the error");
        const oos_signal *unused;
        bool const shown = oos_stages_decide(signals, rules->stages, set, incident, &unused);
        if (shown && incident->phase == OOS_PHASE_UNKNOWN && incident->phase_count)
            incident->phase = incident->phases[0];
        incident->phase_count = 0;
        incident->question = NULL;
        if (shown) {
            incident->phase_sure *= 0.6;
            for (size_t i = 0; i < USUAL_MAX && rules->usual[incident->phase][i]; i++)
                add_also(rules, incident, rules->usual[incident->phase][i], set);
        } else
            incident->phase = OOS_PHASE_NOT_OOM;
    } else if (oos_has_fact(set, OOS_FACT_sleep_residue)) {
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
    } else if (captured || oos_signals_first(signals, set, OOS_SIGNAL_MARKER)) {
        quiet(incident, OOS_PHASE_NOT_OOM, "healthy_log", captured ? NAMED_SURE : 0.6, NULL);
    } else {
        quiet(incident, OOS_PHASE_NOT_OOM, "insufficient_info", 0.2, "the lines in which it failed");
    }
}

/* What follows from something else in the text says nothing of its own: an engine that kills its own processes prints "Killed". */
static void drop_consequences(const oos_signals *signals, oos_signal_set *set)
{
    for (size_t i = 0; i < signals->count; i++)
        if (signals->list[i].unless && oos_signal_has(set, i) &&
            oos_signals_have(signals, set, signals->list[i].unless))
            oos_signal_remove(set, i);
}

static const oos_signal *first_said(const oos_signals *signals, const oos_signal_set *set)
{
    static const oos_signal_kind kinds[] = {OOS_SIGNAL_OOM, OOS_SIGNAL_REFUSAL, OOS_SIGNAL_PART,
                                            OOS_SIGNAL_HOST};
    const oos_signal *said = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !said; i++)
        said = oos_signals_first(signals, set, kinds[i]);
    return said;
}

/* Rules that are as often wrong as right name nothing: the answer is "unknown", and what would decide it. */
#define TELLING 0.4

static void abstain_from_phase(oos_incident *incident)
{
    incident->phase = OOS_PHASE_UNKNOWN;
    incident->basis = OOS_BASIS_NONE;
}

/* What was suggested stays as possible. */
static void abstain_from_cause(const oos_cause_rules *rules, oos_incident *incident,
                               const oos_signal_set *set)
{
    const char *suggested = incident->cause;
    if (incident->cause_sure >= TELLING || strcmp(suggested, "insufficient_info") == 0) return;
    incident->cause = "insufficient_info";
    /* The reason of a cause that is not named is not told either: a headline made of it would be a second cause. */
    incident->cause_why = "the text does not decide between the causes that are possible";
    if (incident->also_count == OOS_ALSO_MAX) incident->also_count--;
    add_also(rules, incident, suggested, set);
    if (!incident->ask) incident->ask = "the full log from the start of the engine";
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
    bool const below_zero =
        oos_known(incident, OOS_NUMBER_kv_available) && incident->numbers[OOS_NUMBER_kv_available].negative &&
        !oos_stages_serving(signals, &set, incident) && !oos_signals_have(signals, &set, "mark.captured");
    bool const refused = oos_has_fact(&set, OOS_FACT_kv_negative) && (incident->failed || below_zero);
    incident->is_oom = stated || refused || is_suspected(signals, &set);
    incident->verdict_rule = said               ? said->id
                             : refused          ? "fact.kv_negative"
                             : incident->is_oom ? "suspected"
                                                : "";
    if (incident->is_oom) {
        bool const suspected = !stated && !refused;
        const oos_signal *sentence;
        oos_stages_decide(signals, rules->stages, &set, incident, &sentence);
        if (suspected) incident->phase_sure *= 0.6;
        if (incident->phase_sure < TELLING) abstain_from_phase(incident);
        find_cause(rules, &set, sentence, incident);
        if (suspected) incident->cause_sure *= 0.6;
        abstain_from_cause(rules, incident, &set);
        if (incident->phase == OOS_PHASE_UNKNOWN && !incident->ask)
            incident->ask = "the lines before the failure, from the start of the engine";
        if (suspected) incident->ask = "the last lines of the traceback, which name the error";
    } else {
        conclude_quiet(signals, rules, &set, incident);
    }
    incident->confidence =
        incident->phase_sure < incident->cause_sure ? incident->phase_sure : incident->cause_sure;
}
