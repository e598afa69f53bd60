/* Where it failed. Each thing in the text leaves some stages and rules out the others. They are asked in the order of trust that
 * data/explain/phases.json writes down: the sentence that fails, the stack, sentences that fail after it, marks, figures. What is
 * left by all is the answer; what contradicts a stronger one is put aside. */
#include "facts/facts.h"
#include "explain/explain.h"
#include "base/json.h"

/* What leaves stages without naming them: the text itself is asked. */
typedef enum asked {
    ASKED_NOTHING,
    ASKED_SENTENCE, /* the stage of which the engine's own sentence speaks */
    ASKED_TOPIC,    /* ... in words that nobody listed */
    ASKED_STACK,
    ASKED_LINES,  /* names in lines of a traceback */
    ASKED_REACHED /* how far the engine had got */
} asked;

typedef struct rule {
    oos_condition when;
    asked asks;
    oos_phase_set leaves;
    oos_basis basis;
    bool vague; /* so general that alone it shows no stage */
    const char *id, *why;
} rule;

enum { FIRST_MAX = 3 };
/* Of stages that are left together, those named first. */
typedef struct preference {
    oos_condition when;
    oos_phase first[FIRST_MAX];
    size_t count;
    bool vague; /* only where it is known whether the engine had started */
    const char *id, *why;
} preference;

struct oos_stage_rules {
    rule *rules;
    preference *preferences;
    size_t rule_count, preference_count;
    oos_condition device;  /* an allocator of the device speaks */
    oos_condition unknown; /* where nothing shows a stage: then none is named */
    double sure[OOS_BASIS_COUNT];
    double few; /* where one stage outweighs the others that are left: 7 of 7 texts, a small sample */
    double counts[OOS_PHASE_COUNT]; /* how many labelled reports failed there */
    const json_t *never;            /* stages that an engine does not have, by its name */
    const json_t *why;              /* sentences by basis and stage */
};

#define BIT(name) OOS_PHASE_BIT(OOS_PHASE_##name)
#define SERVING (BIT(RUNTIME_PREFILL) | BIT(RUNTIME_SAMPLER) | BIT(RUNTIME_OTHER) | BIT(SLEEP_WAKE))
#define STARTING (BIT(RUNTIME_PREFILL) - 1)
#define ANYWHERE (OOS_PHASE_BIT(OOS_PHASE_NOT_OOM) - 1)

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

static bool asked_named(const char *word, asked *ret_asked)
{
    static const char *const words[] = {"", "@sentence", "@topic", "@stack", "@lines", "@reached"};
    for (asked i = ASKED_SENTENCE; i <= ASKED_REACHED; i++)
        if (word && strcmp(word, words[i]) == 0) {
            *ret_asked = i;
            return true;
        }
    return false;
}

static oomsight_status rule_read(const oos_signals *signals, const json_t *json, rule *ret_rule,
                                 oomsight_error *reterr)
{
    rule r = {.id = "", .why = "", .basis = OOS_BASIS_SAID};
    const char *basis = "";
    const json_t *leaves = json_object_get(json, "leaves"), *but = json_object_get(json, "but");
    oos_json_str(json, "id", &r.id);
    oos_json_str(json, "why", &r.why);
    oos_json_str(json, "by", &basis);
    oos_json_bool(json, "vague", &r.vague);
    while (r.basis < OOS_BASIS_COUNT && strcmp(basis, oos_basis_word(r.basis)) != 0) r.basis++;
    if (r.basis == OOS_BASIS_COUNT || (!leaves && !but))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "rule '%s': what it rests on, or leaves", r.id);
    if (!asked_named(json_string_value(leaves), &r.asks)) {
        OOS_TRY(oos_stages_read(leaves ? leaves : but, &r.leaves, reterr));
        if (!leaves) r.leaves = ANYWHERE & ~r.leaves;
    }
    OOS_TRY(oos_condition_read(signals, json, &r.when, reterr));
    *ret_rule = r;
    return OOMSIGHT_OK;
}

static oomsight_status preference_read(const oos_signals *signals, const json_t *json,
                                       preference *ret_preference, oomsight_error *reterr)
{
    preference p = {.id = "", .why = ""};
    const json_t *first = json_object_get(json, "first");
    p.count = oos_min(json_array_size(first), FIRST_MAX);
    oos_json_str(json, "id", &p.id);
    oos_json_str(json, "why", &p.why);
    oos_json_bool(json, "vague", &p.vague);
    for (size_t i = 0; i < p.count; i++) {
        const char *word = json_string_value(json_array_get(first, i));
        if (!word || !oos_phase_named(word, &p.first[i]))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "rule '%s': no such phase", p.id);
    }
    OOS_TRY(oos_condition_read(signals, json, &p.when, reterr));
    *ret_preference = p;
    return OOMSIGHT_OK;
}

static oomsight_status figures_read(const json_t *root, oos_stage_rules *rules, oomsight_error *reterr)
{
    const json_t *sure = json_object_get(root, "sure"), *count;
    const char *word;
    for (oos_basis basis = OOS_BASIS_SAID; basis < OOS_BASIS_COUNT; basis++)
        if (!oos_json_f64(sure, oos_basis_word(basis), &rules->sure[basis]))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "how sure is '%s'?", oos_basis_word(basis));
    oos_json_f64(sure, "unknown", &rules->sure[OOS_BASIS_NONE]);
    oos_json_f64(sure, "few", &rules->few);
    json_object_foreach(json_object_get(root, "counts"), word, count)
    {
        oos_phase phase;
        if (!oos_phase_named(word, &phase) || !json_is_number(count))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "count of '%s'", word);
        rules->counts[phase] = json_number_value(count);
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_stage_rules_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                     const oos_stage_rules **ret_rules, oomsight_error *reterr)
{
    json_t *root;
    OOS_TRY(oos_data_json(arena, data_dir, "explain/phases.json", &root, reterr));
    const json_t *list = json_object_get(root, "rules"), *usual = json_object_get(root, "usual");
    oos_stage_rules *rules = OOS_NEW(arena, oos_stage_rules);
    if (rules) {
        rules->rule_count = json_array_size(list);
        rules->preference_count = json_array_size(usual);
        rules->rules = OOS_NEW_ARRAY(arena, rule, rules->rule_count + 1);
        rules->preferences = OOS_NEW_ARRAY(arena, preference, rules->preference_count + 1);
    }
    if (!rules || !rules->rules || !rules->preferences)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the rules");
    for (size_t i = 0; i < rules->rule_count; i++)
        OOS_TRY(rule_read(signals, json_array_get(list, i), &rules->rules[i], reterr));
    for (size_t i = 0; i < rules->preference_count; i++)
        OOS_TRY(preference_read(signals, json_array_get(usual, i), &rules->preferences[i], reterr));
    OOS_TRY(oos_condition_read(signals, json_object_get(root, "device"), &rules->device, reterr));
    OOS_TRY(oos_condition_read(signals, json_object_get(root, "unknown"), &rules->unknown, reterr));
    rules->never = json_object_get(root, "never");
    rules->why = json_object_get(root, "why");
    *ret_rules = rules;
    return figures_read(root, rules, reterr);
}

bool oos_stages_serving(const oos_signals *signals, const oos_signal_set *set, const oos_incident *incident)
{
    return oos_signals_have(signals, set, "mark.ready") ||
           (incident->furthest >= OOS_PHASE_RUNTIME_PREFILL && incident->furthest <= OOS_PHASE_RUNTIME_OTHER);
}

/* What is known so far. */
typedef struct decision {
    const oos_stage_rules *rules;
    const oos_signals *signals;
    const oos_signal_set *set;
    const oos_incident *incident;
    oos_phase_set left;
    const rule *last;           /* that narrowed */
    const oos_signal *sentence; /* that named the stage */
    bool shown;                 /* something that is not vague narrowed */
} decision;

static bool is_one(oos_phase_set stages)
{
    return !(stages & (stages - 1));
}

static bool has(const decision *d, const char *id)
{
    return oos_signals_have(d->signals, d->set, id);
}

static void narrow(decision *d, const rule *by, oos_phase_set to)
{
    if (!(d->left & to) || (d->left & to) == d->left) return;
    d->left &= to;
    d->last = by;
    d->shown |= !by->vague;
}

/* An engine that measures nothing has no stage in which it does. */
static oos_phase_set stages_of(const oos_stage_rules *rules, const char *engine)
{
    oos_phase_set never = 0;
    oomsight_error unused;
    if (engine) oos_stages_read(json_object_get(rules->never, engine), &never, &unused);
    return ANYWHERE & ~never;
}

static bool yields(const decision *d, const oos_signal *signal)
{
    for (size_t i = 0; i < json_array_size(signal->yields_to); i++)
        if (has(d, json_string_value(json_array_get(signal->yields_to, i)))) return true;
    return false;
}

/* An engine's own refusal, or what it says it could not make, is about nothing else. Where an allocator of the device speaks, a kill
 * or a word beside it is somebody else's. */
static bool counts(const decision *d, oos_signal_kind kind, bool topics)
{
    bool const device = oos_condition_holds(&d->rules->device, d->set);
    if (topics) return kind == OOS_SIGNAL_WORDING && !device;
    switch ((int)kind) {
    case OOS_SIGNAL_REFUSAL:
    case OOS_SIGNAL_HINT: return true;
    case OOS_SIGNAL_OOM:
    case OOS_SIGNAL_HOST: return !device;
    case OOS_SIGNAL_PLACE: return !has(d, "torch.oom");
    default: return false;
    }
}

static void ask_sentences(decision *d, const rule *by, bool topics)
{
    static const oos_signal_kind order[] = {OOS_SIGNAL_REFUSAL, OOS_SIGNAL_OOM,  OOS_SIGNAL_HOST,
                                            OOS_SIGNAL_PLACE,   OOS_SIGNAL_HINT, OOS_SIGNAL_WORDING};
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        if (!counts(d, order[k], topics)) continue;
        for (size_t i = 0; i < d->signals->count; i++) {
            const oos_signal *signal = &d->signals->list[i];
            if (signal->kind != order[k] || signal->phase == OOS_PHASE_COUNT || !oos_signal_has(d->set, i) ||
                yields(d, signal))
                continue;
            oos_phase_set const before = d->left;
            narrow(d, by, OOS_PHASE_BIT(signal->phase));
            if (d->left != before) d->sentence = signal;
            return;
        }
    }
}

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

/* The stage that was under way. That it serves does not say what it serves, unless a prompt was begun. */
static oos_phase_set last_stage(const decision *d)
{
    oos_phase phase = d->incident->furthest;
    bool const sizing = phase == OOS_PHASE_KV_SIZING, alloc = phase == OOS_PHASE_KV_ALLOC;
    /* Where an allocation failed it was not arithmetic that refused, and the other way round. */
    if (sizing && oos_condition_holds(&d->rules->device, d->set)) phase = OOS_PHASE_KV_ALLOC;
    if (alloc && !oos_signals_first(d->signals, d->set, OOS_SIGNAL_OOM)) phase = OOS_PHASE_KV_SIZING;
    if (phase == OOS_PHASE_COUNT) return 0;
    if (order_of(phase) < OOS_PHASE_RUNTIME_PREFILL || d->incident->last_marker == OOS_PHASE_RUNTIME_PREFILL)
        return OOS_PHASE_BIT(phase);
    return 0;
}

/* The stages that the frames leave. The line of source that logged them differs from build to build: an engine that is up outweighs it. */
static oos_phase_set stack_stages(const decision *d)
{
    oos_traceback stack = d->incident->stack;
    if (stack.ending) return 0;
    if (oos_stages_serving(d->signals, d->set, d->incident)) stack.logged = 0;
    return oos_traceback_stages(&stack);
}

static void ask_lines(decision *d, const rule *by)
{
    size_t signal;
    oos_phase_set stages;
    for (size_t i = 0; !is_one(d->left) && oos_frames_line(d->signals->frames, i, &signal, &stages); i++)
        if (oos_signal_has(d->set, signal)) narrow(d, by, stages);
}

static void ask(decision *d, const rule *r)
{
    /* The kernel's log has a clock and an order of its own. */
    bool const ordered = d->incident->furthest != OOS_PHASE_COUNT && !has(d, "nvrm.oom");
    switch (r->asks) {
    case ASKED_NOTHING: narrow(d, r, r->leaves); break;
    case ASKED_SENTENCE: ask_sentences(d, r, false); break;
    case ASKED_TOPIC: ask_sentences(d, r, true); break;
    case ASKED_STACK: narrow(d, r, stack_stages(d)); break;
    case ASKED_LINES: ask_lines(d, r); break;
    case ASKED_REACHED:
        if (!ordered) break;
        /* Steps that were logged before do not outweigh the prompt that is read now. */
        if (d->incident->last_marker == OOS_PHASE_RUNTIME_PREFILL)
            narrow(d, r, OOS_PHASE_BIT(OOS_PHASE_RUNTIME_PREFILL));
        narrow(d, r, from_there_on(d->incident->furthest));
        narrow(d, r, last_stage(d));
        break;
    }
}

static void decide(decision *d)
{
    d->left = stages_of(d->rules, d->incident->engine);
    if (d->incident->text_model) d->left &= ~BIT(MM_PROFILE);
    for (size_t i = 0; i < d->rules->rule_count && !is_one(d->left); i++)
        if (oos_condition_holds(&d->rules->rules[i].when, d->set)) ask(d, &d->rules->rules[i]);
}

/* The likeliest of `stages`. A program that shares nothing out beforehand fails while it works or loads. */
static oos_phase likeliest(const oos_stage_rules *rules, oos_phase_set stages, bool server)
{
    static const oos_phase others[] = {OOS_PHASE_RUNTIME_OTHER, OOS_PHASE_WEIGHT_LOAD,
                                       OOS_PHASE_RUNTIME_PREFILL};
    oos_phase best = OOS_PHASE_UNKNOWN;
    for (size_t i = 0; !server && i < sizeof others / sizeof *others; i++)
        if (stages & OOS_PHASE_BIT(others[i])) return others[i];
    for (oos_phase phase = 0; phase < OOS_PHASE_NOT_OOM; phase++)
        if (stages & OOS_PHASE_BIT(phase) && rules->counts[phase] > 0 &&
            (best == OOS_PHASE_UNKNOWN || rules->counts[phase] > rules->counts[best]))
            best = phase;
    return best;
}

static void add_stage(oos_incident *incident, oos_phase phase, oos_phase_set *left)
{
    if (incident->phase_count == OOS_STAGES_MAX || !(*left & OOS_PHASE_BIT(phase))) return;
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

static const char *of_stage(const decision *d, const char *table, oos_phase phase, const char *otherwise)
{
    const json_t *text = json_object_get(json_object_get(d->rules->why, table), oos_phase_word(phase));
    const char *engine = d->incident->engine;
    if (!json_is_object(text)) return text ? json_string_value(text) : otherwise;
    const char *own = engine ? json_string_value(json_object_get(text, engine)) : NULL;
    return own ? own : json_string_value(json_object_get(text, "any"));
}

static const char *const said_ids[] = {
#define PHASE(name, word, takes) "says:" word,
#include "ledger/phase.def"
#undef PHASE
};
static const char *const stack_ids[] = {
#define PHASE(name, word, takes) "stack:" word,
#include "ledger/phase.def"
#undef PHASE
};

/* One stage is left. */
static void name_one(const decision *d, oos_incident *incident)
{
    const rule *last = d->last;
    incident->phase = (oos_phase)__builtin_ctz(d->left);
    incident->phases[0] = incident->phase;
    incident->phase_count = 1;
    incident->basis = last->basis;
    incident->phase_sure = d->rules->sure[last->basis];
    incident->phase_rule = last->id;
    incident->phase_why = last->why;
    if (d->sentence) {
        incident->phase_rule = last->asks == ASKED_TOPIC ? last->id : said_ids[incident->phase];
        incident->phase_why = of_stage(d, "said", incident->phase, last->why);
    } else if (last->asks == ASKED_STACK || last->asks == ASKED_LINES) {
        incident->phase_rule = stack_ids[incident->phase];
        incident->phase_why = of_stage(d, "stack", incident->phase, last->why);
    }
}

/* Three of four reports that failed in one of `stages` failed in this one. */
static bool outweighs(const oos_stage_rules *rules, oos_phase phase, oos_phase_set stages)
{
    double all = 0;
    for (oos_phase i = 0; i < OOS_PHASE_NOT_OOM; i++)
        if (stages & OOS_PHASE_BIT(i)) all += rules->counts[i];
    return rules->counts[phase] >= 0.75 * all;
}

/* Several are left: three are named, the likeliest first. Where nothing in the text shows a stage, the answer is "unknown". */
static void name_several(const decision *d, oos_incident *incident)
{
    const oos_stage_rules *rules = d->rules;
    bool const server = oos_has_fact(d->set, OOS_FACT_server);
    oos_phase_set left = d->left;
    const preference *first = NULL;
    for (size_t i = 0; i < rules->preference_count && !first; i++)
        if (oos_condition_holds(&rules->preferences[i].when, d->set) &&
            d->left & OOS_PHASE_BIT(rules->preferences[i].first[0]))
            first = &rules->preferences[i];
    for (size_t i = 0; first && i < first->count; i++) add_stage(incident, first->first[i], &left);
    while (left && incident->phase_count < OOS_STAGES_MAX) {
        oos_phase const next = likeliest(rules, left, server);
        if (next == OOS_PHASE_UNKNOWN) break;
        add_stage(incident, next, &left);
    }
    if (incident->phase_count > 1) incident->question = question_of(incident, server);
    bool const mixed =
        server && d->left & SERVING && d->left & STARTING && __builtin_popcount(d->left) > OOS_STAGES_MAX;
    bool const blind = !d->shown && oos_condition_holds(&rules->unknown, d->set);
    if (((blind || mixed) && (!first || first->vague)) || !incident->phase_count) {
        incident->phase_why = "nothing in the text shows a stage";
        incident->phase_sure = rules->sure[OOS_BASIS_NONE];
        return;
    }
    incident->phase = incident->phases[0];
    incident->basis = OOS_BASIS_USUAL;
    incident->phase_sure =
        outweighs(rules, incident->phase, d->left) ? rules->few : rules->sure[OOS_BASIS_USUAL];
    incident->phase_why = first ? first->why : "the most usual of the stages that the text leaves";
    incident->phase_rule = first ? first->id : d->last && !d->last->vague ? d->last->id : "usual";
}

bool oos_stages_decide(const oos_signals *signals, const oos_stage_rules *rules, const oos_signal_set *set,
                       oos_incident *incident, const oos_signal **ret_sentence)
{
    decision d = {.rules = rules, .signals = signals, .set = set, .incident = incident};
    decide(&d);
    incident->phase = OOS_PHASE_UNKNOWN;
    incident->basis = OOS_BASIS_NONE;
    incident->phase_count = 0;
    incident->question = NULL;
    incident->phase_why = incident->phase_rule = "";
    if (is_one(d.left))
        name_one(&d, incident);
    else
        name_several(&d, incident);
    *ret_sentence = d.sentence;
    return d.shown;
}
