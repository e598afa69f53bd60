/* Explanations on paper: text for people, JSON per the contract, Markdown, GitHub annotations, SARIF; and the knowledge
 * base as a table or a page. */
#ifndef OOS_REPORT_EXPLAIN_REPORT_H
#define OOS_REPORT_EXPLAIN_REPORT_H

#include "explain/explain.h"
#include "explain/origin.h"
#include "plan/plan.h"
#include "report/style.h"

/* What the rest of the program found out about an incident: pieces of text, NULL where there is nothing. */
typedef struct oos_incident_notes {
    const char *gpu_guess;  /* device whose total matches, when the log names none */
    bool gpu_sure;          /* no other device shows this total: the name may be told */
    const oos_fix *fixes;   /* of a plan for this very model and device that fails alike */
    size_t fix_count;       /* 0: there is no such plan, or it has none */
    const char *plan_flags; /* the best of them, pasteable */
    const char *plan_check; /* does plan reproduce the logged figures: a sentence */
} oos_incident_notes;

/* Where an incident of a growing log was, and when. */
typedef struct oos_incident_source {
    uint64_t id;
    int64_t seen;     /* when it is told */
    const char *path; /* of the log */
    const oos_origin *origin;
} oos_incident_source;

typedef struct oos_explain_page {
    const oos_explanation *explanation;
    const oos_incident_notes *notes; /* one per incident */
    const char *path;                /* of the input, for annotations; NULL: none */
    bool chinese;
    bool whole;                        /* all of it; else what fits a screen */
    const oos_incident_source *source; /* of all its incidents; NULL: not followed */
} oos_explain_page;

void oos_report_explain_json(const oos_explain_page *page, oos_text *text); /* one object per line */
void oos_report_explain_text(const oos_explain_page *page, const oos_style *style);
void oos_report_explain_markdown(const oos_explain_page *page, const oos_style *style);
void oos_report_explain_github(const oos_explain_page *page, oos_text *text);
void oos_report_explain_sarif(const oos_explain_page *page, oos_text *text);

/* Sentences that several of them share. */
void oos_report_cut_notes(const oos_explanation *explanation, const oos_style *style, const char *before,
                          const char *after);
/* The device: as the log names it, or the only one that shows its total; else NULL. */
const char *oos_report_gpu(const oos_incident *incident, const oos_incident_notes *notes);
/* What the text is: `out_of_memory`, `refused`, `failed`, `unfinished`, `no_failure`, and where there is nothing to tell of `nothing_recognised`,
 * `binary`, `empty`. */
const char *oos_report_incident_state(const oos_incident *incident);
bool oos_report_is_unfinished(
    const oos_incident *incident); /* it ends in a stage of the start, and nothing failed */
bool oos_report_is_unread(const oos_incident *incident); /* one of the last three */
const char *oos_report_incident_title(const oos_explain_page *page, const oos_incident *incident);
/* Flags, quoted for a shell. */
void oos_report_advice_change(const oos_advice *advice, oos_text *text);
/* What plan computed for this very model and device names what the advice says not to help. */
bool oos_report_contradicts(const oos_incident_notes *notes, const oos_advice *advice);
/* What plan suggests for this model and device sets the flag of the advice. */
bool oos_report_repeats(const oos_incident_notes *notes, const oos_advice *advice);

void oos_report_kb_list(const oos_kb *kb, const oos_style *style, bool json);
void oos_report_kb_record(const oos_kb_record *record, const oos_signals *signals, const oos_style *style,
                          bool json);
/* What helps and what does not, phase by phase; `only` OOS_PHASE_COUNT: every phase, `engine` NULL: every engine. */
void oos_report_kb_phases(const oos_advisers *advisers, oos_phase only, const oos_engine_words *engine,
                          const oos_style *style, bool json);

#endif
