/* The one printer of moments and their rows, for every command and format. */
#ifndef OOS_REPORT_LEDGER_H
#define OOS_REPORT_LEDGER_H

#include "base/json_write.h"
#include "ledger/moment.h"
#include "report/style.h"

void oos_report_amount_json(oos_json_writer *w, const char *owner, const oos_amount *amount);

/* [{"owner", "bytes", "source", "low", "high", "how" where there is one}, ...] */
void oos_report_holds_json(oos_json_writer *w, const oos_ledger *ledger);

/* One line of a phase: its word, what it needs, what is there, a bar. The line is left open for what follows. */
void oos_report_moment_bar(const oos_style *style, const oos_moment *moment, oos_ink ink);

/* The rows, a line each; with `explain` how each came to be. */
void oos_report_rows(const oos_style *style, const oos_ledger *ledger, bool explain);

/* The rows from `least_bytes` up as bars of a device, what is free on it last. */
void oos_report_bars(const oos_style *style, const oos_moment *moment, uint64_t least_bytes);

/* The rows of a Markdown table with two columns. */
void oos_report_rows_markdown(const oos_style *style, const oos_ledger *ledger);

#endif
