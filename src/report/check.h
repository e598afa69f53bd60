/* A check of deployment files on paper: text for people, JSON, annotations of a GitHub job, SARIF. */
#ifndef OOS_REPORT_CHECK_H
#define OOS_REPORT_CHECK_H

#include "command/found.h"
#include "plan/plan.h"
#include "report/style.h"

typedef enum oos_level { OOS_LEVEL_OK, OOS_LEVEL_NOTE, OOS_LEVEL_WARNING, OOS_LEVEL_ERROR } oos_level;

/* What a report prints of a plan. */
typedef struct oos_checked_plan {
    oomsight_verdict verdict;
    bool likely;      /* it starts, or likely starts */
    const char *word; /* "starts", "likely fails" */
    oos_phase phase;
    oos_cause cause;
    const char *why; /* NULL when it fits */
    oos_u64 tried_bytes;
    const char *device, *engine, *engine_version;
    uint64_t total_bytes;
    uint64_t ranks;           /* devices that it takes */
    uint64_t held_bytes;      /* of one of them, once it serves, with what others hold */
    const char *best_flags;   /* NULL: none found */
    const char *best_command; /* NULL: none found */
} oos_checked_plan;

/* One command and what became of it. */
typedef struct oos_checked {
    const char *path;
    const oos_found *found;
    const oos_checked_plan *plan; /* NULL: not planned */
    const char *problem;          /* why not */
    const char *engine, *model;   /* names; the model may be NULL: not told */
    const char *const *ask; /* words behind `oomsight plan` that ask the same; NULL: it cannot be asked */
    size_t ask_count;
    const char *beside;        /* commands of the same file on the same device; NULL: none */
    uint64_t beside_bytes;     /* ... what they hold of it */
    uint64_t host_needs_bytes; /* more host memory than its container may have; 0: it is not so */
    bool doubt;                /* no command: `problem` says what was not looked at */
    oos_level doubt_level;
} oos_checked;

/* The plan's answer, in the arena; NULL when out of memory. The flags may be NULL. */
oos_checked_plan *oos_checked_plan_keep(oos_arena *arena, const oos_plan *plan, const char *best_flags,
                                        const char *best_command);

typedef struct oos_check_page {
    const oos_checked *list;
    size_t count, files;
} oos_check_page;

void oos_report_check_text(oos_text *text, const oos_check_page *page, const oomsight_render_params *params);
void oos_report_check_json(oos_text *text, const oos_check_page *page);
void oos_report_check_github(oos_text *text, const oos_check_page *page);
void oos_report_check_sarif(oos_text *text, const oos_check_page *page);

oos_level oos_check_level(const oos_checked *checked);
const char *oos_check_level_word(oos_level level); /* "ok", "note", "warning", "error" */
/* "out of memory in cudagraph_profile on ...", with why it is so. */
void oos_check_sentence(oos_text *text, const oos_checked *checked);

#endif
