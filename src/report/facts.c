/* GPUs and engine versions as a table or JSON. */
#include "report/report.h"
#include "base/json_write.h"
#include "base/locale.h"
#include "facts/facts.h"
#include "ledger/ledger.h"

#include <string.h>

static void gpus_json(oos_text *text, const oos_gpus *gpus)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2};
    oos_json_begin_object(&writer);
    oos_json_field_str(&writer, "schema", "oomsight.gpus/1");
    oos_json_field_array(&writer, "gpus");
    for (size_t i = 0; i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        oos_json_begin_object(&writer);
        oos_json_field_str(&writer, "name", gpu->name);
        oos_json_field_str(&writer, "slice", gpu->slice);
        oos_json_field_u64(&writer, "total_bytes", gpu->total_bytes);
        oos_json_field_u64(&writer, "total_low", gpu->total_low);
        oos_json_field_u64(&writer, "total_high", gpu->total_high);
        oos_json_field_str(&writer, "total_source", gpu->total_measured ? "measured" : "estimated");
        oos_json_field_f64(&writer, "compute_capability", gpu->capability / 10.0);
        oos_json_field_u64(&writer, "sms", gpu->sms);
        oos_json_field_known(&writer, "context_bytes", gpu->costs.context_bytes);
        oos_json_field_array(&writer, "aliases");
        for (size_t k = 0; k < gpu->alias_count; k++) oos_json_put_str(&writer, gpu->aliases[k]);
        oos_json_end_array(&writer);
        oos_json_end_object(&writer);
    }
    oos_json_end_array(&writer);
    oos_json_end_object(&writer);
    oos_text_put(text, "\n");
}

void oos_report_gpus(oos_text *text, const oos_gpus *gpus, const oomsight_render_params *params)
{
    if (params->format == OOMSIGHT_FORMAT_JSON) {
        gpus_json(text, gpus);
        return;
    }
    oos_style const style = oos_style_of(text, params);
    enum { ALIASES_COLUMNS = 25 };
    static const char nvidia[] = "NVIDIA "; /* need not be typed */
    static const char *const heads[] = {"GPU", "total", "cc", "SMs", "short names"};
    oos_table table = {.columns = 5, .kept = 1, .right = 7U << 1};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        oos_table_put(&table, &style, OOS_INK_PLAIN, heads[i]);
    for (size_t i = 0; i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        bool const maker = strncmp(gpu->name, nvidia, strlen(nvidia)) == 0;
        char name[96], total[32], capability[16], sms[16];
        snprintf(name, sizeof name, gpu->slice ? "  MIG %s" : "%s", /* slices stand below their GPU */
                 gpu->slice ? gpu->slice
                 : maker    ? gpu->name + strlen(nvidia)
                            : gpu->name);
        oos_format(total, sizeof total, "%.2f GiB%s", (double)gpu->total_bytes / 0x1p30,
                   gpu->total_measured ? " " : "~");
        oos_format(capability, sizeof capability, "%.1f", gpu->capability / 10.0);
        snprintf(sms, sizeof sms, "%u", gpu->sms);
        oos_text aliases = {0};
        for (size_t k = 0; k < gpu->alias_count && k < 3; k++)
            if (k == 0 || aliases.len + 1 + strlen(gpu->aliases[k]) <= ALIASES_COLUMNS)
                oos_text_printf(&aliases, "%s%s", k ? " " : "", gpu->aliases[k]);
        const char *const cells[] = {name, total, capability, sms, aliases.ptr};
        for (size_t k = 0; k < sizeof cells / sizeof *cells; k++)
            oos_table_put(&table, &style, OOS_INK_PLAIN, cells[k]);
        oos_text_free(&aliases);
    }
    oos_table_end(&table, &style);
    oos_style_put(&style, "~ estimated; where CUDA shows another total: --gpu-total SIZE\n");
}

static void engine_json(oos_json_writer *w, const oos_engine_words *engine, const oos_rule_book *book)
{
    const oos_version *versions;
    size_t const count = oos_rule_book_versions(book, &versions);
    char version[32];
    oos_json_begin_object(w);
    oos_json_field_str(w, "engine", engine->name);
    oos_json_field_str(w, "title", engine->title);
    oos_json_field_array(w, "versions");
    for (size_t i = 0; i < count; i++) {
        oos_version_print(versions[i], version, sizeof version);
        oos_json_put_str(w, version);
    }
    oos_json_end_array(w);
    oos_json_end_object(w);
}

static void engine_text(oos_text *text, const oos_engine_words *engine, const oos_rule_book *book)
{
    const oos_version *versions;
    size_t const count = oos_rule_book_versions(book, &versions);
    char version[32];
    oos_text_put(text, engine->name);
    for (size_t i = 0; i < count; i++) {
        oos_version_print(versions[i], version, sizeof version);
        oos_text_printf(text, "%s %s", i % 8 == 0 && i ? "\n    " : "", version);
    }
    oos_text_put(text, "\n");
}

void oos_report_engines(oos_text *text, const oos_rule_book *const *books,
                        const oomsight_render_params *params)
{
    if (params->format != OOMSIGHT_FORMAT_JSON) {
        for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) engine_text(text, oos_engine_list[i], books[i]);
        oos_style const style = oos_style_of(text, params);
        oos_style_put(&style,
                      "A release between two of these is planned by the rules of the one before it.\n");
        return;
    }
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.engines/1");
    oos_json_field_array(w, "engines");
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) engine_json(w, oos_engine_list[i], books[i]);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

bool oos_report_words(oos_text *text, const char *what, const oos_gpus *gpus, const oos_rule_book *book,
                      const oos_flag_table *flags)
{
    const oos_version *versions;
    char version[32];
    if (strcmp(what, "gpu words") == 0) {
        for (size_t i = 0; i < gpus->count; i++)
            if (gpus->list[i].alias_count) oos_text_printf(text, "%s\n", gpus->list[i].aliases[0]);
    } else if (strcmp(what, "version words") == 0) {
        for (size_t i = oos_rule_book_versions(book, &versions); i--;) {
            oos_version_print(versions[i], version, sizeof version);
            oos_text_printf(text, "%s\n", version);
        }
    } else if (strcmp(what, "flag words") == 0) {
        for (size_t i = 0; i < flags->count; i++)
            if (flags->list[i].until == UINT64_MAX) oos_text_printf(text, "%s\n", flags->list[i].name);
    } else if (strcmp(what, "phase words") == 0) {
        for (oos_phase phase = 0; phase < OOS_PHASE_NOT_OOM; phase++)
            oos_text_printf(text, "%s\n", oos_phase_word(phase));
    } else
        return false;
    return true;
}
