/* What the two ways of explaining share: a whole log, and one that grows. */
#ifndef OOS_API_EXPLAIN_HANDLE_H
#define OOS_API_EXPLAIN_HANDLE_H

#include "api/api.h"
#include "explain/explain.h"
#include "report/explain_report.h"

struct oomsight_explanation {
    oos_arena *arena;
    oos_knowledge knowledge;
    oos_explanation explanation;
    oos_incident_notes *notes;
    struct oos_incident_fixes {
        oomsight_fix *list;
        size_t count;
    } * fixes;         /* of each incident; formed once: accessors change nothing */
    const char *path;  /* the only input, NULL: several or none */
    const char **lost; /* inputs of which nothing could be read, beside others */
    size_t lost_count;
};

/* explain_result.c: what helps each incident, the fixes of its plan or else the advice of its record. */
oomsight_status oos_api_explain_fixes(oomsight_explanation *e, oomsight_error *reterr);

/* The device that fits, and what plan says of the set-up that the log names. */
void oos_api_note_incident(oos_arena *arena, const oomsight_data *data, int allow_hub,
                           const oos_incident *incident, oos_incident_notes *notes);

#endif
