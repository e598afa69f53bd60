/* What people read for the words of the JSON reports. Phases, components and sources keep their identifiers there. */
#ifndef OOS_REPORT_TITLES_H
#define OOS_REPORT_TITLES_H

#include "base/text.h"
#include "ledger/ledger.h"
#include "report/style.h"

const char *oos_report_owner_title(oos_owner owner);
const char *oos_report_source_title(oos_source source);

const char *oos_report_where(oos_phase phase); /* "while loading weights"; "" where it is not known */
const char *oos_report_point(oos_phase phase); /* "loading weights" */

/* `gives_up` of a fix as what follows "Trade-off: ". */
void oos_report_trade_off(oos_text *text, const char *gives_up);
void oos_report_trade_off_put(const oos_style *style, const char *gives_up); /* in the reader's language */

/* Words with their numbers of tokens, blocks and sequences as 31,744. */
void oos_report_grouped(oos_text *text, const char *words);

#endif
