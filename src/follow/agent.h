/* Many growing logs at once: finds them, follows each, keeps positions, counts. The caller waits between two steps, gets
 * incidents one by one, and says when they are safe with whoever takes them. */
#ifndef OOS_EXPLAIN_AGENT_H
#define OOS_EXPLAIN_AGENT_H

#include "follow/state.h"
#include "follow/tail.h"

typedef struct oos_agent oos_agent;

typedef struct oos_agent_params {
    const char *const *paths; /* files, folders, patterns, "-" */
    size_t path_count;
    const char *state_folder; /* NULL: begin anew each time */
    size_t most_files;        /* followed at once */
    void *context;
    void (*on_incident)(void *context, oos_tail *tail, const oos_incident *incident);
    bool (*is_full)(void *context); /* enough was told: the rest of the round comes with the next step */
    void (*on_trouble)(void *context, const char *path, const char *sentence); /* worth a line on stderr */
} oos_agent_params;

oomsight_status oos_agent_open(const oos_knowledge *knowledge, const oos_agent_params *params,
                               oos_agent **ret_agent, oomsight_error *reterr);
void oos_agent_close(oos_agent *agent); /* NULL is fine */

/* Look for files, read, tell. *ret_busy: there is more to read, do not wait. */
oomsight_status oos_agent_step(oos_agent *agent, bool *ret_busy, oomsight_error *reterr);
/* Wait until something may have happened, at most so long. */
void oos_agent_wait(oos_agent *agent, int milliseconds);
/* Everything told so far has been delivered: positions may be written, at once when incidents were among it. */
void oos_agent_delivered(oos_agent *agent, bool incidents);
/* Tell what is open: this is the end. */
oomsight_status oos_agent_finish(oos_agent *agent, oomsight_error *reterr);
bool oos_agent_ended(const oos_agent *agent); /* only standard input was followed, and it is over */

typedef struct oos_agent_figures {
    uint64_t files, bytes, lines;
    uint64_t behind_bytes;
    double behind_seconds; /* age of the oldest text that was not read */
    uint64_t state_errors;
} oos_agent_figures;

oos_agent_figures oos_agent_look(const oos_agent *agent);
/* Every file that is followed. */
void oos_agent_each(const oos_agent *agent, void (*on_tail)(void *context, const oos_tail *tail),
                    void *context);

#endif
