/* A measured device as text and JSON. The record has the keys of data/gpus in their order, as far as a device can tell them. */
#include "report/report.h"
#include "base/json_write.h"
#include "base/locale.h"
#include "dryrun/dryrun.h"

#include <stdio.h>
#include <string.h>

/* A figure beside the one in use. */
typedef struct row {
    const char *key, *words;
    oos_u64 seen, used;
    const char *where; /* the constant that it would replace; NULL: none */
} row;

enum { ROWS = 12 };

/* The figures in use for such a device; one that is not known has those of its compute capability. */
static unsigned rows_of(const oos_measure *m, const oos_gpu *known, row *ret_rows)
{
    oos_gpu stranger = {.name = "", .capability = m->capability, .sms = m->sms};
    const oos_gpu *gpu = known ? known : &stranger;
    oos_device_spec spec;
    oos_dryrun_device(gpu, (oos_u64){0}, 0, &spec);
    oos_u64 const none = {0};
    oos_u64 const total = known ? oos_u64_of(known->total_bytes) : none;
    oos_u64 const nvml = known && known->memory != OOS_MEMORY_UNIFIED && !known->slice
                             ? oos_u64_of(known->nvml_total_bytes)
                             : none;
    row const rows[] = {
        {"total_bytes", "total, cuMemGetInfo", m->total_info, total, "data/gpus: total_bytes"},
        {"device_total_bytes", "total, cuDeviceTotalMem", m->total_device, none, NULL},
        {"nvml_total_bytes", "total, NVML", m->total_nvml, nvml,
         oos_flag_or(m->unified, false) ? NULL : "data/gpus: nvml_total_bytes"},
        {"nvml_reserved_bytes", "kept by the driver, NVML", m->nvml_reserved, none, NULL},
        {"absent_bytes", "not free with a context", m->absent_bytes, none, NULL},
        {"context_bytes", "CUDA context", m->context_bytes, oos_u64_of(spec.context_bytes),
         "data/gpus: context_bytes"},
        {"granule_bytes", "granule of cuMemCreate", m->granule_bytes, none, NULL},
        {"small_bytes", "one byte of cuMemAlloc", m->small_bytes, none, NULL},
        {"kernel_bytes", "first kernel", m->kernel_bytes, oos_u64_of(spec.kernel_bytes),
         "data/gpus: driver_costs.kernel_bytes"},
        {"graph_bytes", "a CUDA graph", m->graph_bytes, oos_u64_of(spec.graph_bytes),
         "data/gpus: driver_costs.graph_bytes"},
        {"graph_node_bytes", "a kernel in a graph", m->node_bytes, oos_u64_of(spec.graph_node_bytes),
         "data/gpus: driver_costs.graph_node_bytes"},
        {"collective_bytes", "a communicator of two ranks", m->collective_bytes,
         oos_u64_of(spec.collective_bytes), "data/gpus: driver_costs.collective_bytes"},
    };
    _Static_assert(sizeof rows / sizeof *rows == ROWS, "all of them");
    memcpy(ret_rows, rows, sizeof rows);
    return ROWS;
}

static bool replaces(const row *r)
{
    return r->where && r->seen.known && !(r->used.known && r->used.value == r->seen.value);
}

/* ---- the record ------------------------------------------------------------------------------------------------- */

static void put_origin(oos_json_writer *w, const char *key, const oos_measure *m, const char *more)
{
    oos_text words = {0};
    oos_text_printf(&words, "oomsight doctor --measure%s, driver %s, CUDA %u.%u%s",
                    m->stand_in ? " on a simulated GPU" : "", m->driver[0] ? m->driver : "?", m->cuda / 1000,
                    m->cuda % 1000 / 10, more);
    oos_json_field_str(w, key, words.ptr);
    w->text->failed |= words.failed;
    oos_text_free(&words);
}

static void put_costs(oos_json_writer *w, const oos_measure *m)
{
    oos_json_field_object(w, "driver_costs");
    oos_json_field_str(w, "driver", m->driver[0] ? m->driver : "?");
    oos_json_field_known(w, "graph_bytes", m->graph_bytes);
    oos_json_field_known(w, "graph_node_bytes", m->node_bytes);
    oos_json_field_known(w, "kernel_bytes", m->kernel_bytes);
    oos_json_field_known(w, "collective_bytes", m->collective_bytes);
    oos_json_end_object(w);
}

/* What lies idle beside others is theirs as well: then only NVML's difference is a context. */
static oos_u64 context_of(const oos_measure *m)
{
    if (m->context_bytes.known && m->context_bytes.value) return m->context_bytes;
    return m->others_seen ? (oos_u64){0} : m->absent_bytes;
}

static void put_record(oos_json_writer *w, const oos_measure *m)
{
    char capability[16] = "";
    oos_u64 const context = context_of(m);
    bool const unified = oos_flag_or(m->unified, false);
    oos_json_begin_object(w);
    oos_json_field_str(w, "name", m->name);
    oos_json_field_known(w, "total_bytes", m->total_info);
    oos_json_field_str(w, "total_source", "measured");
    oos_json_field_known(w, "total_low", m->total_info);
    oos_json_field_known(w, "total_high", m->total_info);
    put_origin(w, "total_origin", m, "");
    oos_json_field_known(w, "nvml_total_bytes", unified ? (oos_u64){0} : m->total_nvml);
    snprintf(capability, sizeof capability, "%u.%u", m->capability / 10, m->capability % 10);
    oos_json_field_str(w, "compute_capability", capability);
    oos_json_field_u64(w, "sms", m->sms);
    if (unified) oos_json_field_str(w, "memory_kind", "unified");
    oos_json_field_known(w, "context_bytes", context);
    if (context.known) {
        oos_json_field_str(w, "context_source", "measured");
        put_origin(w, "context_note", m,
                   m->context_bytes.known && m->context_bytes.value ? ": what NVML's used grew by"
                                                                    : ": total less free");
    }
    put_costs(w, m);
    oos_json_end_object(w);
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void put_size(const oos_style *style, oos_u64 bytes)
{
    char size[32] = "-";
    if (bytes.known && bytes.value < OOS_MIB)
        oos_format(size, sizeof size, "%.2f KiB", (double)bytes.value / 1024);
    else if (bytes.known)
        oos_size_print(bytes.value, size, sizeof size);
    oos_text_printf(style->text, "  %12s", size);
}

static void put_rows(const oos_style *style, const row *rows, unsigned count)
{
    oos_text_put(style->text, "  ");
    oos_style_cell(style, 28, "");
    oos_text_put(style->text, "  ");
    oos_style_cell(style, -12, "this device");
    oos_text_put(style->text, "  ");
    oos_style_cell(style, -12, "oomsight has");
    oos_text_put(style->text, "\n");
    for (unsigned i = 0; i < count; i++) {
        oos_text_put(style->text, "  ");
        oos_style_cell(style, 28, rows[i].words);
        put_size(style, rows[i].seen);
        put_size(style, rows[i].used);
        if (replaces(&rows[i])) oos_style_put(style, "  would replace %s", rows[i].where);
        oos_text_put(style->text, "\n");
    }
}

static void put_control(const oos_style *style, const oos_measure *m)
{
    if (!m->control_seen.known) return;
    char seen[32], expected[32];
    oos_size_print(m->control_seen.value, seen, sizeof seen);
    oos_size_print(m->control_expected.value, expected, sizeof expected);
    oos_style_put(style, "  graphs of another length, as a check: %s, the figures give %s\n", seen, expected);
    if (m->graph_launch_bytes.known && m->graph_launch_bytes.value)
        oos_style_put(style, "  the first launch of a graph takes %llu bytes more\n",
                      (unsigned long long)m->graph_launch_bytes.value);
}

static void put_troubles(const oos_style *style, const oos_measure *m)
{
    if (m->graph_error[0]) oos_style_put(style, "  CUDA graphs were not measured: %s\n", m->graph_error);
    if (m->rank_error[0]) oos_style_put(style, "  communicators were not measured: %s\n", m->rank_error);
    for (unsigned i = 0; i < m->missing_count; i++)
        oos_style_put(style, "  this libcuda has no %s\n", m->missing[i]);
    if (m->total_info.known && !m->total_nvml.known)
        oos_style_put(style, "  NVML reports nothing for this device: the context is total minus free\n");
    if (m->others_seen)
        oos_style_put(style, "  other processes use memory of this device: measure again when it is idle\n");
    if (m->error[0])
        oos_style_ink(style, OOS_INK_BAD, "  stopped at %s: %s\n", oos_measure_stage_word(m->stage),
                      m->error);
    if (m->timed_out)
        oos_style_ink(style, OOS_INK_BAD, "  timed out: %s did not answer\n",
                      oos_measure_stage_word(m->stage));
}

void oos_report_measure_text(oos_text *text, const oos_measure *m, const oos_gpu *gpu,
                             const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    row rows[ROWS];
    if (m->name[0]) {
        oos_text_printf(text, "GPU %u: ", m->device_index);
        oos_style_word(&style, m->name);
        oos_text_printf(text, ", %u.%u", m->capability / 10, m->capability % 10);
        oos_style_put(&style, ", driver %s, CUDA %u.%u\n", m->driver[0] ? m->driver : "?", m->cuda / 1000,
                      m->cuda % 1000 / 10);
        put_rows(&style, rows, rows_of(m, gpu, rows));
        put_control(&style, m);
    } else
        oos_style_put(&style, "no device was measured\n");
    put_troubles(&style, m);
    if (!m->total_info.known) return;
    oos_style_put(&style,
                  gpu ? "The record for data/gpus (docs/how-to/measure-a-gpu.md says where to send it):\n"
                      : "This device is not in data/gpus; its record (docs/how-to/measure-a-gpu.md says "
                        "where to send it):\n");
    oos_json_writer writer = {.text = text, .pretty_depth = 2};
    put_record(&writer, m);
    oos_text_put(text, "\n");
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void put_word(oos_json_writer *w, const char *key, const char *word)
{
    oos_json_field_str(w, key, *word ? word : NULL);
}

void oos_report_measure_json(oos_text *text, const oos_measure *m, const oos_gpu *gpu)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    row rows[ROWS];
    unsigned const count = rows_of(m, gpu, rows);
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.measure/1");
    oos_json_field_str(w, "oomsight", oomsight_version());
    oos_json_field_u64(w, "device", m->device_index);
    put_word(w, "name", m->name);
    put_word(w, "driver", m->driver);
    oos_json_field_known(w, "cuda", (oos_u64){m->cuda != 0, m->cuda});
    oos_json_field_known(w, "nccl", (oos_u64){m->nccl_version != 0, m->nccl_version});
    oos_json_field_str(w, "stage", oos_measure_stage_word(m->stage));
    oos_json_field_bool(w, "timed_out", m->timed_out);
    put_word(w, "error", m->error);
    put_word(w, "graphs_error", m->graph_error);
    put_word(w, "ranks_error", m->rank_error);
    oos_json_field_array(w, "missing_calls");
    for (unsigned i = 0; i < m->missing_count; i++) oos_json_put_str(w, m->missing[i]);
    oos_json_end_array(w);
    oos_json_field_bool(w, "others_hold_memory", m->others_seen);
    oos_json_field_object(w, "measured");
    for (unsigned i = 0; i < count; i++) oos_json_field_known(w, rows[i].key, rows[i].seen);
    oos_json_field_known(w, "graph_launch_bytes", m->graph_launch_bytes);
    oos_json_field_known(w, "graph_check_bytes", m->control_seen);
    oos_json_field_known(w, "graph_check_expected_bytes", m->control_expected);
    oos_json_field_u64(w, "node_resolution_bytes", m->resolution_bytes);
    oos_json_end_object(w);
    oos_json_field_array(w, "replaces");
    for (unsigned i = 0; i < count; i++) {
        if (!replaces(&rows[i])) continue;
        oos_json_begin_object(w);
        oos_json_field_str(w, "where", rows[i].where);
        oos_json_field_known(w, "measured_bytes", rows[i].seen);
        oos_json_field_known(w, "used_bytes", rows[i].used);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_key(w, "record");
    if (m->total_info.known)
        put_record(w, m);
    else
        oos_json_put_null(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}
