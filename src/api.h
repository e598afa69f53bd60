/* What the files of the API layer share: the insides of public handles. */
#ifndef OOS_API_H
#define OOS_API_H

#include "facts/flags.h"
#include "facts/gpu.h"
#include "facts/rules.h"
#include "input/model.h"

struct oomsight_data {
    oos_arena *arena;
    const char *dir; /* NULL: embedded */
    oos_gpus gpus;
    oos_rule_book *rules;
    oos_flag_table flags;
};

struct oomsight_model {
    oos_arena *arena;
    oos_model model;
};

#endif
