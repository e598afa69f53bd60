/* What the files of the API layer share: the insides of public handles. */
#ifndef OOS_API_H
#define OOS_API_H

#include "base/params.h"
#include "engines/engine.h"
#include "facts/gpu.h"
#include "ledger/moment.h"
#include "machine/machine.h"
#include "model/model.h"
#include "oomsight_private.h"

#include <pthread.h>

/* The facts of an engine are read when it is first asked for: those who plan one need not wait for the others. The engine that is
 * meant where nothing is said is there from the beginning. */
struct oomsight_data {
    oos_arena *arena;
    const char *dir; /* NULL: embedded */
    oos_gpus gpus;
    oos_engine_facts facts[OOS_ENGINE_COUNT];
    bool known[OOS_ENGINE_COUNT];
    pthread_mutex_t lock; /* of facts, known and arena: an engine is read when it is first asked for */
};

struct oomsight_machine {
    oos_machine machine;
};

/* NULL is fine: none is asked for. */
oomsight_status oos_api_engine_known(const char *name, oomsight_error *reterr);

/* The facts of an engine; they live as long as the data. */
oomsight_status oos_api_facts(const oomsight_data *data, const oos_engine *engine,
                              const oos_engine_facts **ret_facts, oomsight_error *reterr);

/* Those of the engine that is meant where nothing is said. */
oomsight_status oos_api_first_facts(const oomsight_data *data, const oos_engine_facts **ret_facts,
                                    oomsight_error *reterr);

struct oomsight_model {
    oos_arena *arena;
    oos_model model;
};

/* oomsight_model_open() with the families of `data`, NULL for the embedded ones, and the JSON of --hf-overrides, NULL for none. */
oomsight_status oos_api_model_open(const oomsight_data *data, const char *name, int allow_hub,
                                   const char *overrides, oomsight_model **ret_model, oomsight_error *reterr);

/* The first flag of the command that its engine version does not know; NULL: none. */
const char *oos_api_plan_unknown_flag(const oomsight_plan *plan);

/* A fix of a plan as callers see it. */
oomsight_fix oos_api_fix_of(const oos_fix *fix, const char *flags);

/* Moments and rows of a ledger as callers see them: 1. No such row: 0, and nothing was touched. */
int oos_api_moment_give(const oos_moment *moment, oomsight_moment *ret_moment);
int oos_api_hold_give(const oos_ledger *ledger, size_t index, oomsight_hold *ret_hold);
size_t oos_api_hold_count(const oos_ledger *ledger);

/* What is inside a public plan; lives as long as it does. */
const struct oos_plan *oos_api_plan(const oomsight_plan *plan);

#endif
