#pragma once
#include "engines/vllm/setup/setup.h"
#include "plan/plan.h"
#include <string.h>

/* What the engine refuses before it looks at a device's memory: the checks of its own configuration, in the order in which it
 * makes them, with its own sentences. Bounds, methods and architectures come from facts/arguments.c; what is code in the
 * engine is code here. */

/* The first refusal of the command, if there is one. */
oomsight_status oos_arguments_check(oos_arena *arena, const oos_setup *setup, oos_refusal *ret_refusal,
                                    oomsight_error *reterr);

/* What the files that check arguments share. */

typedef struct oos_check {
    oos_arena *arena;
    const oos_setup *setup;
    oos_refusal *refusal;
    uint64_t given; /* a bit for each flag of the command: most questions are about flags that it has not */
    const oos_bounds **bounds; /* of each flag, NULL: it has none, or no value; looked up once */
    bool nomem;
} oos_check;

/* Refuse with a sentence; only the first counts. Always true, so that a check can return it. */
bool oos_check_refuse(oos_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void oos_check_mend(oos_check *c, const char *flag, uint64_t value);
void oos_check_mend_without(oos_check *c, const char *flag);

/* The text a flag was last given with; NULL: not given, or a switch. */
const char *oos_check_given(const oos_check *c, const char *flag);
bool oos_check_number(const oos_check *c, const char *flag, uint64_t *ret_value); /* whole, not negative */
bool oos_check_has(const oos_check *c, const char *flag);

/* Bounds of the numbers of one part of the configuration. */
bool oos_check_bounds(oos_check *c, const char *part);

/* Each returns true when it refused. In the order of the engine. */
bool oos_check_model(oos_check *c);
bool oos_check_quantization_late(oos_check *c);
bool oos_check_launch(oos_check *c);
bool oos_check_parallel(oos_check *c);
bool oos_check_data_parallel(oos_check *c);
bool oos_check_parallel_late(oos_check *c);
bool oos_check_speculation(oos_check *c);
bool oos_check_scheduler(oos_check *c);
bool oos_check_lora(oos_check *c);
bool oos_check_sizes_twice(oos_check *c);
bool oos_check_features(oos_check *c);
bool oos_check_backend(oos_check *c);
bool oos_check_state(oos_check *c);
bool oos_check_levels(oos_check *c);
bool oos_check_executor(oos_check *c);
bool oos_check_microbatches(oos_check *c);
bool oos_check_async(oos_check *c);
bool oos_check_rest(oos_check *c);
