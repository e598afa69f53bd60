/* Moments on paper: JSON, terminal, Markdown. */
#include "report/report.h"

void oos_report_amount_json(oos_json_writer *w, const char *owner, const oos_amount *amount)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "owner", owner);
    oos_json_field_u64(w, "bytes", amount->bytes);
    oos_json_field_str(w, "source", oos_source_word(amount->source));
    oos_json_field_u64(w, "low", amount->low);
    oos_json_field_u64(w, "high", amount->high);
    if (amount->how) oos_json_field_str(w, "how", amount->how);
    oos_json_end_object(w);
}

void oos_report_holds_json(oos_json_writer *w, const oos_ledger *ledger)
{
    oos_json_begin_array(w);
    for (const oos_hold *row = ledger->first; row; row = row->next)
        oos_report_amount_json(w, oos_owner_word(row->owner), &row->amount);
    oos_json_end_array(w);
}

void oos_report_moment_bar(const oos_style *style, const oos_moment *moment, oos_ink ink)
{
    oos_text_put(style->text, "  ");
    oos_style_cell(style, 25, oos_report_point(moment->phase));
    oos_text_printf(style->text, style->chinese ? " %7.2f / %7.2f " : " %7.2f of %6.2f ",
                    oos_gib(moment->peak_bytes), oos_gib(moment->limit_bytes));
    /* behind the bar there is room for " out of memory" */
    oos_style_bar(style, moment->peak_bytes, moment->limit_bytes, style->width > 80 ? style->width - 61 : 19,
                  ink);
}

void oos_report_rows(const oos_style *style, const oos_ledger *ledger, bool explain)
{
    for (const oos_hold *row = ledger->first; row; row = row->next) {
        const oos_amount *amount = &row->amount;
        oos_text_printf(style->text, "    %8.3f  ", oos_gib(amount->bytes));
        oos_style_cell(style, 34, oos_report_owner_title(row->owner));
        oos_style_ink(style, OOS_INK_DIM, "%s", oos_report_source_title(amount->source));
        if (amount->source == OOS_SOURCE_ESTIMATED)
            oos_style_ink(style, OOS_INK_DIM, " (%.2f to %.2f)", oos_gib(amount->low), oos_gib(amount->high));
        oos_text_put(style->text, "\n");
        if (explain && amount->how) oos_style_paragraph(style, 14, amount->how);
    }
}

static void put_bar(const oos_style *style, const char *label, uint64_t bytes, uint64_t total, oos_ink ink)
{
    oos_text_put(style->text, "  ");
    oos_style_cell(style, 34, label);
    oos_text_printf(style->text, " %8.2f GiB ", oos_gib(bytes));
    oos_style_bar(style, bytes, total, style->width >= 100 ? 40 : 24, ink);
    oos_text_put(style->text, "\n");
}

void oos_report_bars(const oos_style *style, const oos_moment *moment, uint64_t least_bytes)
{
    uint64_t const total = moment->limit_bytes;
    for (const oos_hold *row = moment->ledger.first; row; row = row->next)
        if (row->amount.bytes >= least_bytes)
            put_bar(style, oos_report_owner_title(row->owner), row->amount.bytes, total, OOS_INK_PLAIN);
    put_bar(style, "free", oos_sub(total, moment->peak_bytes), total, OOS_INK_GOOD);
}

void oos_report_rows_markdown(const oos_style *style, const oos_ledger *ledger)
{
    for (const oos_hold *row = ledger->first; row; row = row->next) {
        oos_text_put(style->text, "| ");
        oos_style_put(style, "%s", oos_report_owner_title(row->owner));
        oos_text_printf(style->text, " | %.2f |\n", oos_gib(row->amount.bytes));
    }
}
