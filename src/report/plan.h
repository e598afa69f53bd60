/* A plan as text, JSON and Markdown. */
#ifndef OOS_REPORT_PLAN_H
#define OOS_REPORT_PLAN_H

#include "base/text.h"
#include "plan/plan.h"

void oos_report_plan_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params);
void oos_report_plan_json(oos_text *text, const oos_plan *plan);
void oos_report_plan_markdown(oos_text *text, const oos_plan *plan, const oomsight_render_params *params);

/* Which GPU does it take: the choices of a plan. JSON: oomsight.choices/1. */
void oos_report_choices_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params);
void oos_report_choices_json(oos_text *text, const oos_plan *plan);

/* Several plans of one command side by side. */
void oos_report_plans(oos_text *text, const oos_plan *const *plans, size_t count,
                      const oomsight_render_params *params);

/* The rows of that comparison that differ, each an object of the array that is open. */
struct oos_json_writer;
void oos_report_plan_changes(struct oos_json_writer *writer, const oos_plan *before, const oos_plan *after);

const char *oos_report_verdict_word(oomsight_verdict verdict); /* "fits", "tight", ... */

/* What people read: "will start", "will probably start", ..., "unknown". The second in capitals. */
const char *oos_report_answer_word(const oos_plan *plan);
const char *oos_report_answer_heading(const oos_plan *plan);

/* What stands behind the heading: "not enough KV cache for one request"; "" where there is nothing to say. */
void oos_report_reason(const oos_plan *plan, char *ret_words, size_t size);

/* "(20 % chance)" of starting; false: the answer is sure, or the chance about one in two. */
bool oos_report_chance(const oos_plan *plan, char *ret_words, size_t size);

/* "fixes": [...], also of an explanation. */
void oos_report_fixes_json(struct oos_json_writer *w, const oos_fix *fixes, size_t count);

/* A probability, or null where nobody can tell. */
void oos_report_probability_json(struct oos_json_writer *w, const char *key, double probability);

/* "this GPU with Qwen/Qwen3-32B-AWQ (18.1 GiB, 7,360 KV tokens)" */
const char *oos_report_named(const oos_need_checkpoint *need, char *words, size_t size);

/* "about 16.9 GiB: 4 bit, leaves 12,345 tokens"; NULL: there is no such checkpoint. */
const char *oos_report_checkpoint(const oos_needs *needs, char *words, size_t size);

/* The words of a fix, quoted for a shell. NULL when out of memory. */
const char *oos_report_plan_change(oos_arena *arena, const oos_fix *fix);
void oos_report_change(oos_text *text, const oos_fix *fix);

/* A model as people call it: the last part of its path, and of a folder of the Hugging Face cache the name it was asked for
 * by, not the commit. */
const char *oos_report_model_name(const char *path, char *name, size_t size);

#endif
