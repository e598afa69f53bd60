/* The models that are known by their id, as a table or JSON. */
#include "report/report.h"

/* How the sizes are known, in words (docs/reference/formats/catalogue.md). */
static const char *words_of(const oos_model_row *row)
{
    static const struct {
        const char *level, *words;
    } list[] = {{"whole", "its config"},
                {"proven", "sizes, proven"},
                {"alias", "as many parameters as another"},
                {"recipe", "quantised as its maker does"},
                {"sizes", "sizes, not proven"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i].level, row->level) == 0) return list[i].words;
    return row->level;
}

static void row_json(oos_json_writer *w, const oos_model_row *row)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "id", row->id);
    oos_json_field_str(w, "level", row->level);
    oos_json_field_str(w, "rests_on", row->rests_on);
    oos_json_field_f64(w, "weights_may_differ_by", (double)row->wide / 1000);
    if (row->counted) {
        oos_json_field_str(w, "architecture", row->architecture);
        oos_json_key(w, "parameters");
        oos_json_begin_object(w);
        oos_json_field_u64(w, "decoder", row->parameters.decoder);
        oos_json_field_u64(w, "tower", row->parameters.tower);
        oos_json_field_u64(w, "drafter", row->parameters.drafter);
        oos_json_end_object(w);
    }
    oos_json_end_object(w);
}

static void models_json(oos_text *text, const oos_model_row *rows, size_t count)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2};
    oos_json_begin_object(&writer);
    oos_json_field_str(&writer, "schema", "oomsight.models/1");
    oos_json_key(&writer, "models");
    oos_json_begin_array(&writer);
    for (size_t i = 0; i < count; i++) row_json(&writer, &rows[i]);
    oos_json_end_array(&writer);
    oos_json_end_object(&writer);
    oos_text_put(text, "\n");
}

void oos_report_models(oos_text *text, const oos_model_row *rows, size_t count,
                       const oomsight_render_params *params)
{
    if (params->format == OOMSIGHT_FORMAT_JSON) {
        models_json(text, rows, count);
        return;
    }
    oos_style const style = oos_style_of(text, params);
    for (size_t i = 0; i < count; i++) {
        const oos_model_row *row = &rows[i];
        oos_text_printf(text, "%-58s ", row->id);
        oos_style_put(&style, "%s\n", words_of(row));
        if (!row->counted) continue; /* one is asked for */
        if (row->rests_on) oos_style_put(&style, "known from %s\n", row->rests_on);
        uint64_t const all = oos_add(row->parameters.decoder, row->parameters.tower);
        oos_style_put(&style, "%s, %llu parameters without a draft model\n", row->architecture,
                      (unsigned long long)all);
    }
    if (count == 1) return;
    oos_style_put(&style, "%zu built-in models; proven: the sizes give the published number of parameters\n",
                  count);
}
