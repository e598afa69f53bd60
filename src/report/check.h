/* A check of deployment files on paper: text for people, JSON, annotations of a GitHub job, SARIF. */
#ifndef OOS_REPORT_CHECK_H
#define OOS_REPORT_CHECK_H

#include "command/found.h"
#include "plan/plan.h"
#include "report/style.h"

typedef enum oos_level { OOS_LEVEL_OK, OOS_LEVEL_NOTE, OOS_LEVEL_WARNING, OOS_LEVEL_ERROR } oos_level;

/* One command and what became of it. */
typedef struct oos_checked {
    const char *path;
    const oos_found *found;
    const oos_plan *plan;     /* NULL: not planned */
    const char *problem;      /* why not */
    const char *best_flags;   /* NULL: none found */
    const char *best_command; /* NULL: none found */
    bool doubt;               /* a file, not a command: `problem` says what is the matter */
    oos_level doubt_level;
} oos_checked;

typedef struct oos_check_page {
    const oos_checked *list;
    size_t count, files;
} oos_check_page;

void oos_report_check_text(oos_text *text, const oos_check_page *page, const oomsight_render_params *params);
void oos_report_check_json(oos_text *text, const oos_check_page *page);
void oos_report_check_github(oos_text *text, const oos_check_page *page);
void oos_report_check_sarif(oos_text *text, const oos_check_page *page);

oos_level oos_check_level(const oos_checked *checked);
/* "out of memory in cudagraph_profile on ...", with why it is so. */
void oos_check_sentence(oos_text *text, const oos_checked *checked);

#endif
