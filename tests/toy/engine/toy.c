/* An engine for tests: it loads the weights, and its cache takes a share of the device less what they take. */
#include "base/locale.h"
#include "engines/engines.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct toy_rules {
    uint64_t torch_minor;
    double share;
} toy_rules;

static const oos_rule_place places[] = {{"torch_minor", offsetof(toy_rules, torch_minor), OOS_RULE_WHOLE},
                                        {"share", offsetof(toy_rules, share), OOS_RULE_REAL}};

const oos_engine_words oos_words_toy = {
    .name = "toy",
    .title = "Toy",
    .config_title = "Toy config",
    .module = "toy.server",
    .server = "toy.server",
    .family = "toy",
    .serving = "server",
    .image = "example/toy",
    .image_serves = true,
    .model_flags = {"--model"},
    .port_flag = "--listen",
    .port = 9100,
    .ready = "Toy is ready",
    .running = "toy:running",
    .waiting = "toy:waiting",
    .kv_used = "toy:kv_used",
    .dry_variable = "TOY_COLOUR=none",
};

static bool entry_at(const char *const *words, size_t count, size_t at, oos_serve_entry *ret_entry)
{
    if (at + 1 >= count || oos_engine_words_at(words[at], words[at + 1]) != &oos_words_toy) return false;
    ret_entry->first = at + 2;
    return true;
}

static const char *const modelled[] = {"--model", "--share", NULL};
static const oos_dialect dialect = {.entry_at = entry_at,
                                    .expected = "Toy: expected `toy serve MODEL ...`",
                                    .start = "toy serve MODEL ...",
                                    .image = "example/toy",
                                    .model_flag = "--model",
                                    .modelled = modelled};

static oomsight_status book_load(oos_arena *arena, const char *data_dir, oos_rule_book **ret_book,
                                 oomsight_error *reterr)
{
    return oos_rule_book_load(arena, data_dir, oos_words_toy.name, places, sizeof places / sizeof *places, 0,
                              ret_book, reterr);
}

static uint64_t torch_minor(const oos_rule_book *book, oos_version version)
{
    toy_rules rules;
    bool beyond;
    return oos_rules_fill(book, version, &rules, &beyond, NULL) == OOMSIGHT_OK ? rules.torch_minor : 0;
}

static oos_ranks ranks(const oos_serve *serve)
{
    (void)serve;
    return (oos_ranks){1, 1, NULL};
}

static oomsight_status settings_tell(oos_arena *arena, double share, oos_plan *plan, oomsight_error *reterr)
{
    oos_setting *settings = OOS_NEW_ARRAY(arena, oos_setting, 2);
    if (!settings) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    settings[0] = oos_setting_text("architecture", plan->model->architecture);
    settings[1] = oos_setting_real("share", share);
    plan->told.settings = plan->told.compared = settings;
    plan->told.setting_count = plan->told.compared_count = 2;
    return OOMSIGHT_OK;
}

static oomsight_status plan_start(oos_arena *arena, const oos_start *start, const oos_engine_facts *facts,
                                  oos_plan *ret_plan, oomsight_error *reterr)
{
    const oos_given_flag *given = oos_serve_given(start->serve, "--share");
    toy_rules rules;
    char *end;
    bool beyond;
    OOS_TRY(oos_rules_fill(facts->rules, start->version, &rules, &beyond, reterr));
    double const asked = given && given->value ? oos_real_read(given->value, &end) : rules.share;
    double const share = asked > 0 && asked <= 1 ? asked : rules.share;
    oos_shard const shard = {.model = start->model,
                             .tp = 1,
                             .pp = 1,
                             .dp = 1,
                             .ep = 1,
                             .capability = start->device.capability,
                             .dtype = start->model->dtype,
                             .ways = {.torch_minor = rules.torch_minor}};
    oos_driver const driver = oos_device_driver(&start->device, rules.torch_minor);
    oos_plan *plan = ret_plan;
    *plan =
        (oos_plan){.engine = &oos_words_toy,
                   .model = start->model,
                   .device = start->device,
                   .serving.tp = 1,
                   .serving.pp = 1,
                   .serving.dp = 1,
                   .answer.phase = OOS_PHASE_COUNT,
                   .serving.length = oos_max(1, start->model->max_position),
                   .serving.attention = "toy",
                   .doubtful = {.torch_minor = rules.torch_minor, .share_flag = "--share", .share = share}};
    plan->sizes.context = oos_amount_guess(driver.context_bytes, driver.context_low, driver.context_high,
                                           "CUDA context of this device");
    OOS_TRY(oos_weights_of_stage(arena, &shard, 0, &plan->sizes.weights, reterr));
    uint64_t *param_bytes = OOS_NEW_ARRAY(arena, uint64_t, 1);
    if (!param_bytes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the weights");
    *param_bytes = plan->sizes.weights.param_bytes;
    plan->sizes.stage_param_bytes = param_bytes;
    plan->sizes.budget_bytes = oos_u64_from((double)start->device.total_bytes * share);
    plan->sizes.non_kv = oos_weights_amount(&plan->sizes.weights);
    oos_moment *load = oos_moment_open(arena, plan, OOS_PHASE_WEIGHT_LOAD);
    oos_moment_hold(load, OOS_OWNER_WEIGHTS, plan->sizes.non_kv);
    OOS_TRY(oos_moment_close(load, oos_limit_device(plan, 1), reterr));
    uint64_t const token_bytes = oos_max(1, oos_mul(start->model->layer_count, 4096));
    plan->layout.bytes_per_token = (double)token_bytes;
    plan->kv.available_bytes = oos_sub(plan->sizes.budget_bytes, plan->sizes.non_kv.bytes);
    plan->kv.tokens = plan->kv.available_bytes / token_bytes;
    plan->kv.max_concurrency = (double)plan->kv.tokens / (double)plan->serving.length;
    oos_plan_judge(plan);
    if (plan->answer.phase != OOS_PHASE_COUNT) {
        plan->answer.cause = OOS_CAUSE_WEIGHTS;
        plan->answer.why = "The weights are larger than the device.";
    }
    return settings_tell(arena, share, plan, reterr);
}

static oomsight_status solve(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                             oomsight_error *reterr)
{
    (void)arena, (void)scratch, (void)start, (void)facts, (void)gpus, (void)plan, (void)reterr;
    return OOMSIGHT_OK;
}

const oos_engine oos_engine_toy = {.words = &oos_words_toy,
                                   .dialect = &dialect,
                                   .book_load = book_load,
                                   .torch_minor = torch_minor,
                                   .ranks = ranks,
                                   .plan = plan_start,
                                   .solve = solve};
