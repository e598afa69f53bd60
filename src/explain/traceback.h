/* A traceback as a path through stages. Each frame belongs to some stages, by its function and its module
 * (data/explain/frames.json). The engine's own steps, which stand outside, say what is running: a start or a served step.
 * Within that the other frames are intersected, innermost first. What no engine ever ran is placed by
 * the names of its folders and files, which are alike across engines. */
#ifndef OOS_EXPLAIN_TRACEBACK_H
#define OOS_EXPLAIN_TRACEBACK_H

#include "base/arena.h"
#include "base/error.h"
#include "ledger/ledger.h"

typedef uint32_t oos_phase_set; /* a bit per phase; 0: nothing is known */
#define OOS_PHASE_BIT(phase) ((oos_phase_set)1 << (phase))
_Static_assert(OOS_PHASE_COUNT <= 32, "a set has a bit per phase");

typedef struct oos_frames oos_frames;

oomsight_status oos_frames_load(oos_arena *arena, const char *data_dir, const oos_frames **ret_frames,
                                oomsight_error *reterr);

enum { OOS_TRACEBACK_MAX = 48 };

/* The frames of one failure, in the order they were printed: the innermost last. The oldest are forgotten. */
typedef struct oos_traceback {
    oos_phase_set frames[OOS_TRACEBACK_MAX];
    oos_phase_set
        bounds[OOS_TRACEBACK_MAX]; /* of a frame that is a step of the engine itself; 0: it is none */
    oos_phase_set method;          /* of the worker's method that is said to have failed */
    oos_phase_set logged;          /* of the loggers that print the traceback */
    oos_phase_set callee; /* of what the last frame's line of code calls: where a cut traceback went on */
    uint16_t count;
    bool dispatched; /* the last frame of an engine was one that passes a worker's method on */
    bool forward;    /* has frames of a model, its layers or their kernels */
    bool worker;     /* the last frame of an engine is one of its worker */
    bool closed;     /* the error's own line came: what follows is somebody else's */
    bool ending;     /* frames of a shutdown: a consequence, not a stage */
} oos_traceback;

/* Takes the frame of `line`, if it has one, or the method that it says has failed. `after`: what follows the line. */
void oos_traceback_take(const oos_frames *frames, oos_traceback *stack, oos_view line, oos_view after);

/* Takes the `[file.py:123]` in front of a line: where an engine logs a traceback it knows what it had called. */
void oos_traceback_logger(const oos_frames *frames, oos_traceback *stack, oos_view line);

/* The stages that all of the stack allows; 0: it says nothing. */
oos_phase_set oos_traceback_stages(const oos_traceback *stack);

#endif
