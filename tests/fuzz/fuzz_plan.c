/* A whole plan: words and a config to phases, fixes and every report. Four bytes choose version, GPU and how it is printed; then
 * words between line ends, zero, config.json, and behind another zero hf_quant_config.json. */
#include "support.h"

#include "api/api.h"
#include "plan/plan.h"

enum { WORDS_MAX = 96 };

static void ledgers_check(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_moment *phase = &plan->phases[i];
        uint64_t sum = 0;
        for (const oos_hold *row = phase->ledger.first; row; row = row->next) {
            FUZZ_REQUIRE((unsigned)row->owner < OOS_OWNER_COUNT);
            FUZZ_REQUIRE(row->amount.low <= row->amount.bytes && row->amount.bytes <= row->amount.high);
            sum = oos_add(sum, row->amount.bytes);
        }
        FUZZ_REQUIRE(sum == phase->peak_bytes);
        FUZZ_REQUIRE(phase->peak_low <= phase->peak_bytes && phase->peak_bytes <= phase->peak_high);
    }
}

static void plan_check(const oomsight_plan *handle)
{
    const oos_plan *plan = oos_api_plan(handle);
    FUZZ_REQUIRE(plan->answer.verdict != OOMSIGHT_VERDICT_FITS || plan->answer.phase == OOS_PHASE_COUNT);
    FUZZ_REQUIRE(plan->answer.verdict != OOMSIGHT_VERDICT_FAILS || plan->answer.phase < OOS_PHASE_COUNT);
    ledgers_check(plan);
    for (size_t i = 0; i < plan->help.fix_count; i++) {
        FUZZ_REQUIRE(plan->help.fixes[i].change_count > 0 || plan->help.fixes[i].without ||
                     plan->help.fixes[i].release);
        FUZZ_REQUIRE(plan->help.fixes[i].command);
        FUZZ_REQUIRE(plan->help.fixes[i].verdict == OOMSIGHT_VERDICT_FITS ||
                     plan->help.fixes[i].verdict == OOMSIGHT_VERDICT_TIGHT);
    }
    for (size_t i = 0; i < plan->help.inert_count; i++)
        FUZZ_REQUIRE(plan->help.inert[i].flag && plan->help.inert[i].why);
}

static void render(const oomsight_plan *plan, uint8_t how)
{
    static const oomsight_format formats[] = {OOMSIGHT_FORMAT_TEXT, OOMSIGHT_FORMAT_JSON,
                                              OOMSIGHT_FORMAT_MARKDOWN, OOMSIGHT_FORMAT_HTML};
    oomsight_render_params params = OOMSIGHT_RENDER_PARAMS_INIT;
    params.explain = how & 1;
    params.verbose = how >> 1 & 1;
    params.color = how >> 1 & 1;
    params.ascii = how >> 2 & 1;
    params.language = how & 8 ? "zh" : "en";
    params.width = how & 16 ? 40 + how : 0;
    for (size_t i = 0; i < (how & 32 ? 4 : 3); i++) { /* pages are long: every other input */
        char *text = NULL;
        params.format = formats[i];
        oomsight_status const status = oomsight_plan_render(plan, &params, &text, NULL);
        fuzz_look(status, text, formats[i], 0);
    }
    if (how & 64) {
        const oomsight_plan *const both[] = {plan, plan};
        char *text = NULL;
        params.format = how & 128 ? OOMSIGHT_FORMAT_JSON : OOMSIGHT_FORMAT_TEXT;
        oomsight_status const status = oomsight_plans_render(both, 2, &params, &text, NULL);
        fuzz_look(status, text, OOMSIGHT_FORMAT_TEXT, 0);
    }
    (void)oomsight_plan_best_flags(plan);
    (void)oomsight_plan_best_command(plan);
}

static void plan_one(const uint8_t *head, char *text, oos_view config, oos_view quant)
{
    const oomsight_data *data = fuzz_data();
    const oos_engine_facts *facts = NULL;
    FUZZ_REQUIRE(oos_api_first_facts(data, &facts, NULL) == OOMSIGHT_OK);
    const oos_version *versions;
    size_t const version_count = oos_rule_book_versions(facts->rules, &versions);
    const char *words[WORDS_MAX] = {"vllm", "serve", "m"};
    char version[32], gpu[200];
    const oos_gpu *device = &data->gpus.list[(size_t)(head[1] | (head[2] & 3) << 8) % data->gpus.count];
    oomsight_model model = {.arena = oos_arena_create(4096)};
    oomsight_error error = {0};
    oomsight_plan *plan = NULL;
    FUZZ_REQUIRE(model.arena);
    oos_version_print(versions[head[0] / 4 % version_count], version, sizeof version);
    snprintf(gpu, sizeof gpu, "%sx%u", device->name, 1 + (head[2] >> 2 & 7));
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    params.data = data;
    params.model = &model;
    params.command = words;
    params.command_count = 3 + fuzz_split(text, words + 3, WORDS_MAX - 3);
    params.engine_version = version;
    if (head[2] & 128) { /* the other engine, its own command or one that is said in its words */
        params.engine = oos_engine_list[1]->name;
        params.engine_version = NULL;
        if (head[0] & 2) words[0] = params.engine;
    }
    params.skip_fixes = head[0] % 4 != 0; /* a search is a hundred plans */
    params.gpu = head[2] & 32 ? NULL : gpu;
    if (head[2] & 96) params.gpu_total_bytes = (uint64_t)(1 + head[1]) << 28;
    if (head[2] & 128) params.gpu_used_bytes = (uint64_t)head[0] << 26;
    if (oos_model_read(model.arena, NULL, config, quant, &model.model, &error) == OOMSIGHT_OK) {
        error = (oomsight_error){0};
        if (oomsight_plan_create(&params, &plan, &error) == OOMSIGHT_OK) {
            plan_check(plan);
            render(plan, head[3]);
            oomsight_plan_free(plan);
        } else {
            FUZZ_REQUIRE(error.text[0]);
        }
    }
    oos_arena_free(model.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    enum { HEAD = 4 };
    if (len < HEAD) return 0;
    const char *text = (const char *)bytes + HEAD, *end = (const char *)bytes + len;
    const char *zero = memchr(text, '\0', len - HEAD);
    if (!zero) return 0;
    const char *config = zero + 1, *second = memchr(config, '\0', (size_t)(end - config));
    oos_view const quant = second ? (oos_view){second + 1, (size_t)(end - second) - 1} : (oos_view){NULL, 0};
    char *words = strndup(text, (size_t)(zero - text));
    FUZZ_REQUIRE(words);
    plan_one(bytes, words, (oos_view){config, (size_t)((second ? second : end) - config)}, quant);
    free(words);
    return 0;
}
