/* Speculative decoding: which drafter, how many tokens it drafts, and what a token of its cache takes (0.5.23, arg_groups/speculative_hook.py,
 * model_runner_components/spec_aux_hidden_state.py and model_executor/pool_configurator.py). A drafter is loaded before the pools are sized,
 * with an embedding and a head of its own that it gives up when they are allocated. */
#include "base/ascii.h"
#include "engines/sglang/sglang.h"

#include <string.h>

/* What "drafts" of an architecture says: its own layers without a path are not counted when the pool is sized. */
enum { DRAFTS_UNCOUNTED = 1 };
enum { STEPS = 3, STEPS_TREE = 5, TOKENS_TREE = 8, TOKENS_NGRAM = 12 };

static bool is(const char *word, const char *other)
{
    return word && oos_same(word, other);
}

/* The drafter is layers of the checkpoint itself. */
static bool own_layers(const oos_start *start)
{
    return !start->draft ||
           (start->draft->path && start->model->path && strcmp(start->draft->path, start->model->path) == 0);
}

static uint64_t layers_bytes(const sglang_start *setup, const oos_model *model, const oos_layer *layers,
                             uint64_t count)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t one;
        bool sliding;
        if (oos_sglang_layer_bytes(setup, &model->attentions[layers[i].attention], &one, &sliding))
            bytes = oos_add(bytes, one);
    }
    return bytes;
}

/* _auto_choose_speculative_params(), where no number of steps is given; one branch drafts a token more than its steps. */
static uint64_t tokens_of(const sglang_request *r, const sglang_rules *rules, const oos_model *model)
{
    bool const tree = !r->steps.known && !is(r->drafter, "STANDALONE") &&
                      oos_architecture_says(rules->facts, model->architecture, "draft_tree");
    uint64_t const steps = r->steps.known ? r->steps.value : tree ? STEPS_TREE : STEPS;
    if (!r->steps.known) return tree ? TOKENS_TREE : STEPS + 1;
    return oos_u64_or(r->branches, 1) == 1 ? steps + 1 : r->draft_tokens;
}

sglang_drafts oos_sglang_drafts_of(const sglang_request *r, const sglang_start *setup)
{
    const oos_start *start = setup->asked;
    const oos_model *model = setup->model;
    sglang_drafts drafts = {0};
    if (!r->drafter) return drafts;
    bool const eagle = is(r->drafter, "EAGLE") || is(r->drafter, "NEXTN"), third = is(r->drafter, "EAGLE3"),
               alone = is(r->drafter, "STANDALONE");
    drafts.present = true;
    if (is(r->drafter, "NGRAM")) {
        drafts.tokens = r->draft_tokens_given ? r->draft_tokens : TOKENS_NGRAM;
        return drafts;
    }
    if (!eagle && !third && !alone) {
        drafts.unread = "this --speculative-algorithm is not modelled for SGLang";
        return drafts;
    }
    drafts.tokens = tokens_of(r, setup->rules, model);
    drafts.method = third ? "eagle3" : eagle ? "eagle" : "draft_model";
    if (own_layers(start)) {
        drafts.own = true;
        drafts.layers = model->mtp_layer_count;
        if (eagle && oos_sglang_is_compressed(model)) return drafts; /* its pool has them */
        drafts.token_bytes = layers_bytes(setup, model, model->mtp_layers, model->mtp_layer_count);
        drafts.counted = start->draft || oos_architecture_says(setup->rules->facts, model->architecture,
                                                               "drafts") != DRAFTS_UNCOUNTED;
        if (!eagle || !drafts.layers)
            drafts.unread =
                "drafting without --speculative-draft-model-path is not modelled for this model and SGLang";
        return drafts;
    }
    drafts.layers = start->draft->layer_count;
    drafts.token_bytes = layers_bytes(setup, start->draft, start->draft->layers, drafts.layers);
    drafts.counted = true;
    if (start->draft->common || !start->draft->known)
        drafts.unread = "the architecture of the draft model is not known here";
    return drafts;
}
