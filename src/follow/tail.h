/* One text that grows and is rotated: the file under a name, and the files that were moved away from it before they were
 * read to the end. Nothing here waits. */
#ifndef OOS_EXPLAIN_TAIL_H
#define OOS_EXPLAIN_TAIL_H

#include "explain/explain.h"
#include "explain/origin.h"
#include "follow/roots.h"
#include "follow/rotated.h"

typedef struct oos_tail oos_tail;

/* What all tails share. */
typedef struct oos_tails {
    oos_roots *roots;
    const oos_knowledge *knowledge;
    oos_bench *bench;
    oos_arena *results; /* of the incident that is being told */
    oos_explanation found;
    void *context;
    void (*on_incident)(void *context, oos_tail *tail, const oos_incident *incident);
    uint64_t bytes, lines; /* read so far */
} oos_tails;

/* A place to go on from: everything before it has been told, or tells nothing. */
typedef struct oos_tail_point {
    oos_file_id id;
    uint64_t prior;       /* print of the file before this one, 0: not known */
    uint64_t byte, lines; /* lines: before it */
    int64_t time;         /* when this was so */
    const oos_incident *history;
    uint64_t version; /* of the history */
    bool told;
} oos_tail_point;

/* `from` NULL: from the beginning of the file as it is. The file may not exist yet. */
oomsight_status oos_tail_open(oos_tails *shared, size_t root, const char *relative,
                              const oos_tail_point *from, oos_tail **ret_tail, oomsight_error *reterr);
void oos_tail_close(oos_tail *tail); /* NULL is fine */

typedef enum oos_tail_state {
    OOS_TAIL_QUIET, /* everything that is there has been read */
    OOS_TAIL_BUSY,  /* there is more */
    OOS_TAIL_GONE   /* the name leads nowhere any more, and everything was read: to be closed */
} oos_tail_state;

/* Read at most `most_bytes`; tell what has ended. `now` is a clock that only goes forward, in milliseconds. */
oomsight_status oos_tail_step(oos_tail *tail, uint64_t most_bytes, int64_t now, oos_tail_state *ret_state,
                              oomsight_error *reterr);
void oos_tail_check_soon(oos_tail *tail); /* something happened in its folder */
oomsight_status oos_tail_finish(oos_tail *tail, oomsight_error *reterr); /* tell what is open: the end */

bool oos_tail_point_of(const oos_tail *tail, oos_tail_point *ret_point); /* false: nothing was read yet */
const char *oos_tail_path(const oos_tail *tail);
const oos_origin *oos_tail_origin(const oos_tail *tail);
const oos_incident *
oos_tail_history(const oos_tail *tail);              /* figures since the engine's last start; NULL: none */
uint64_t oos_tail_behind(const oos_tail *tail);      /* bytes not read when last looked */
int64_t oos_tail_behind_since(const oos_tail *tail); /* when all had been read last */
/* 16 hex digits' worth: the same for the same incident at the same place. */
uint64_t oos_tail_incident_id(const oos_tail *tail, const oos_incident *incident);
const char *
oos_tail_error(oos_tail *tail); /* why the file cannot be read, once; NULL: it can, or it was told */

#endif
