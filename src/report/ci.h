/* What annotations of a GitHub job and SARIF need whatever they tell of. Used by *_ci.c. */
#ifndef OOS_REPORT_CI_H
#define OOS_REPORT_CI_H

#include "base/json_write.h"

/* Workflow commands end at a line break; percent signs and breaks are escaped, in properties commas and colons too (GitHub,
 * workflow-commands). */
void oos_ci_escaped(oos_text *text, const char *words, bool property);

/* A SARIF log of one run: open, write the rules, turn to the results, write them, close. */
void oos_sarif_open(oos_json_writer *w);
void oos_sarif_results(oos_json_writer *w);
void oos_sarif_close(oos_json_writer *w);

void oos_sarif_words(oos_json_writer *w, const char *key, const char *words); /* "key": {"text": words} */
void oos_sarif_place(oos_json_writer *w, const char *path, uint64_t first_line, oos_u64 last_line);

#endif
