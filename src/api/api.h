/* What the files of the API layer share: the insides of public handles. */
#ifndef OOS_API_H
#define OOS_API_H

#include "base/params.h"
#include "facts/flags.h"
#include "facts/gpu.h"
#include "facts/rules.h"
#include "machine/machine.h"
#include "model/model.h"

struct oomsight_data {
    oos_arena *arena;
    const char *dir; /* NULL: embedded */
    oos_gpus gpus;
    oos_rule_book *rules;
    oos_flag_table flags;
};

struct oomsight_machine {
    oos_machine machine;
};

struct oomsight_model {
    oos_arena *arena;
    oos_model model;
};

/* oomsight_model_open() with the families of `data`, NULL for the embedded ones, and the JSON of --hf-overrides, NULL for none. */
oomsight_status oos_api_model_open(const oomsight_data *data, const char *name, int allow_hub,
                                   const char *overrides, oomsight_model **ret_model, oomsight_error *reterr);

/* Fails with the names that resemble the word. */
oomsight_status oos_api_unknown_gpu(const oomsight_data *data, const char *word, oomsight_error *reterr);

/* The first flag of the command that its engine version does not know; NULL: none. */
const char *oos_api_plan_unknown_flag(const oomsight_plan *plan, const oomsight_data *data);

/* What is inside a public plan; lives as long as it does. */
const struct oos_plan *oos_api_plan(const oomsight_plan *plan);

#endif
