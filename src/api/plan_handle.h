/* What the files of planning share: the handle, and the steps that plan.c takes one after the other. */
#ifndef OOS_API_PLAN_HANDLE_H
#define OOS_API_PLAN_HANDLE_H

#include "api/api.h"
#include "engines/translate.h"
#include "plan/doubt.h"

struct oomsight_plan {
    oos_arena *arena;
    oomsight_model *own_model; /* NULL when the caller brought one */
    oomsight_model *draft;
    const oos_engine *engine;
    const oos_engine_facts *facts;
    oos_serve serve;
    oos_engine_env env;
    oos_start start;
    oos_plan plan;
    oos_translation translation; /* count 0: the command was in this engine's words */
    const char **fix_flags;      /* of each fix; formed once: accessors change nothing */
};

/* A plan while it is made: what was asked for, and what was taken where nothing was said. */
typedef struct oos_plan_ask {
    const oomsight_plan_params *params;
    const oos_machine *machine; /* NULL: not looked at */
    const char *const *words;   /* the command, its environment before it, no shell around it */
    size_t word_count;
    const char *gpu_note;     /* which device was taken; NULL: the one that was named */
    const char *held;         /* who holds memory of it; NULL: nobody */
    const char *release_from; /* where the release comes from; NULL: it was given */
    const char *newer;        /* why its rules are those of an older one; NULL: they are its own */
} oos_plan_ask;

/* plan_words.c: the command in the words of the engine that is planned, and its release. */
oomsight_status oos_ask_words(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);
oomsight_status oos_ask_release(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);

/* device.c: the device; what others hold of that of this machine, once the command is read. */
oomsight_status oos_ask_device(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);
void oos_ask_held(oomsight_plan *plan, oos_plan_ask *ask);
bool oos_ask_is_every_gpu(const oos_plan_ask *ask);

/* plan_notes.c: what was assumed, what is not modelled, what may be mistyped. */
oomsight_status oos_ask_notes(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr);

/* plan_offers.c: what would help, and what is certain of all of it. */
oomsight_status oos_ask_offers(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr);

/* The whole command of a fix, of these words as they were read; around what a shell runs as one line that shell stays. */
const char *oos_offers_command(oomsight_plan *plan, const oos_plan_ask *ask, const char *const *words,
                               const oos_serve *serve, const oos_fix *fix);

/* plan_checkpoints.c: checkpoints that are known by name, among what the plan needs. */
oomsight_status oos_ask_checkpoints(oomsight_plan *plan, const oos_plan_ask *ask,
                                    const oos_doubt_facts *doubts, oomsight_error *reterr);

#endif
