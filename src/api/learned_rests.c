/* What the terms of an installed engine do not explain: each of its small starts is planned with them, and compared with what it left for the
 * KV cache. Memory outside of PyTorch is in neither: a simulated GPU was told to have none. */
#include "api/api.h"
#include "base/check.h"

#include <math.h>
#include <stdlib.h>

enum { PROBES_MAX = 16, WORDS_MAX = 32 };
#define WORTH (16 * OOS_MIB) /* a range, and a line for us */

typedef struct probe {
    oos_view model;
    uint64_t requested, available;
    bool eager;
    const char *command[WORDS_MAX],
        *environment[WORDS_MAX]; /* as the engine was started; the model is a config */
    size_t words, variables;
} probe;

static size_t words_read(oos_arena *arena, oos_scan *scan, const char **ret_words)
{
    oos_view raw;
    size_t count = 0;
    if (!oos_scan_skip(scan, &raw)) return 0;
    oos_scan items = oos_scan_begin(raw);
    if (!oos_scan_open(&items, '[')) return 0;
    while (count < WORDS_MAX && oos_scan_item(&items)) {
        ret_words[count] = oos_scan_text(arena, oos_scan_string_or_none(&items));
        count += ret_words[count] != NULL;
    }
    return count;
}

static bool probe_read(oos_arena *arena, oos_scan *scan, probe *ret_probe)
{
    oos_view key, eager;
    *ret_probe = (probe){.model = {"", 0}};
    if (!oos_scan_open(scan, '{')) return false;
    while (oos_scan_key(scan, &key)) {
        uint64_t *number = oos_view_is(key, "requested_bytes")   ? &ret_probe->requested
                           : oos_view_is(key, "available_bytes") ? &ret_probe->available
                                                                 : NULL;
        if (oos_view_is(key, "model"))
            ret_probe->model = oos_scan_string_or_none(scan);
        else if (oos_view_is(key, "command"))
            ret_probe->words = words_read(arena, scan, ret_probe->command);
        else if (oos_view_is(key, "environment"))
            ret_probe->variables = words_read(arena, scan, ret_probe->environment);
        else if (oos_view_is(key, "eager") && oos_scan_skip(scan, &eager))
            ret_probe->eager = oos_view_is(eager, "true");
        else if (!number || oos_scan_peek(scan) != OOS_SCAN_NUMBER || !oos_scan_u64(scan, number))
            oos_scan_skip(scan, NULL);
    }
    return ret_probe->words && ret_probe->requested > ret_probe->available && ret_probe->available;
}

static oos_view config_find(oos_view configs, oos_view name)
{
    oos_view key, value, found = {"", 0};
    oos_scan scan = oos_scan_begin(configs);
    if (!configs.len || !oos_scan_open(&scan, '{')) return found;
    while (oos_scan_key(&scan, &key) && oos_scan_skip(&scan, &value))
        if (key.len == name.len && memcmp(key.ptr, name.ptr, key.len) == 0) found = value;
    return found;
}

/* Bytes that the engine took more than was planned of its own. */
static oomsight_status rest_of(oos_arena *arena, const oomsight_data *data, const oos_learned *learned,
                               const probe *p, oos_view config, double *ret_bytes, oomsight_error *reterr)
{
    oomsight_model model = {.name = "small start"};
    oomsight_plan *plan;
    const char *release = oos_arena_copy(arena, learned->release);
    if (!release) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a release");
    OOS_TRY(oos_model_read(arena, data->dir, config, (oos_view){"", 0}, &model.model, reterr));
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    params.data = data;
    params.model = &model;
    params.command = p->command;
    params.command_count = p->words;
    params.gpu = "h100";
    params.engine_version = release;
    params.environment = p->environment;
    params.environment_count = p->variables;
    params.skip_fixes = 1;
    OOS_TRY(oos_api_plan_learned(&params, learned, &plan, reterr));
    uint64_t planned = 0;
    static const oos_owner owners[] = {OOS_OWNER_WEIGHTS, OOS_OWNER_ACTIVATION_PEAK, OOS_OWNER_BATCH_BUFFERS,
                                       OOS_OWNER_GRAPH_ESTIMATE};
    for (size_t i = 0; i < plan->plan.phase_count; i++)
        for (size_t k = 0; k < sizeof owners / sizeof *owners; k++)
            if (plan->plan.phases[i].phase == OOS_PHASE_KV_SIZING)
                planned = oos_add(planned, oos_ledger_bytes(&plan->plan.phases[i].ledger, owners[k]));
    *ret_bytes = (double)(p->requested - p->available) - (double)planned;
    oomsight_plan_free(plan);
    if (planned) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "the model of a start could not be planned");
}

typedef struct rest {
    const char *form;
    double low, high;
    bool known;
} rest;

static void rest_add(rest *r, double bytes)
{
    r->low = r->known && r->low < bytes ? r->low : bytes;
    r->high = r->known && r->high > bytes ? r->high : bytes;
    r->known = true;
}

static void rest_put(const rest *r, oos_text *text, oos_text *said)
{
    if (!r->known) return;
    double const low = r->low < 0 ? r->low : 0, high = r->high > 0 ? r->high : 0;
    oos_text_printf(text, ",\n{\"term\":\"rest\",\"form\":\"%s\",\"value\":0,\"low\":%.0f,\"high\":%.0f}",
                    r->form, low, high);
    if (high - low < (double)WORTH) return;
    oos_text_printf(said,
                    "A start (%s) took %.0f MiB %s than these terms say: the range of its kind is wider\n",
                    r->form, (high > -low ? high : -low) / 0x1p20, high > -low ? "more" : "less");
}

oomsight_status oos_learned_rests(oos_arena *arena, const oomsight_data *data, const oos_learned *learned,
                                  oos_view probes, oos_view configs, oos_text *text, oos_text *said,
                                  oomsight_error *reterr)
{
    rest rests[] = {{.form = "dense"}, {.form = "moe"}, {.form = "hybrid"}, {.form = "graphs"}};
    enum { GRAPHS = 3 };
    double worst = 0;
    size_t planned = 0;
    oos_scan scan = oos_scan_begin(probes);
    if (!probes.len || !oos_scan_open(&scan, '[')) return OOMSIGHT_OK;
    for (size_t count = 0; count < PROBES_MAX && oos_scan_item(&scan); count++) {
        probe p;
        double bytes = 0;
        if (oos_scan_peek(&scan) != OOS_SCAN_OBJECT || !probe_read(arena, &scan, &p)) continue;
        oos_view const config = config_find(configs, p.model);
        for (size_t i = 0; i < GRAPHS && config.len; i++) {
            if (!oos_view_is(p.model, rests[i].form)) continue;
            OOS_TRY(rest_of(arena, data, learned, &p, config, &bytes, reterr));
            rest_add(&rests[p.eager ? i : GRAPHS], bytes);
            worst = fmax(worst, fabs(bytes) / (double)p.available);
            planned++;
        }
    }
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) rest_put(&rests[i], text, said);
    if (planned)
        oos_text_printf(said, "With these terms the KV cache of %zu small starts is planned within %.2f %%\n",
                        planned, worst * 100);
    return OOMSIGHT_OK;
}
