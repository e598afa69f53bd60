#pragma once
#include "command/command.h"
#include "facts/facts.h"
#include "plan/plan.h"

/* The seam between the product and the engines it plans: what an engine brings with it. The rest of the product knows a command, a
 * plan and the ledger in it; how the one becomes the other is the engine's. An engine is a folder here and one of data/engines.
 *
 *   words      what it is called, prints and serves    oomsight_engine_words of oomsight_private.h; NAME/words.c
 *   dialect    how its command is read                 command/command.h; its flags are data/engines/NAME/flags.json
 *   book_load  its releases and their rules            data/engines/NAME/rules.json
 *   plan       defaults, phases, budget and pool       into an oos_plan, with what of plan/ and sizes/ it can use
 *   solve      levers: what would help                 each offered only after it was planned again
 *   logged     its own list of arguments in a log      a command again
 */

/* What one start is planned from. */
typedef struct oos_start {
    const oos_model *model, *draft; /* draft NULL: none */
    const oos_serve *serve;
    const oos_engine_env *env;
    oos_device_facts device;
    oos_version version;
    unsigned beyond;             /* releases after the newest that is known; 0: none */
    const char *kv_layers_json;  /* NULL: the model's own */
    const oos_rule_trial *trial; /* a rule with another value; NULL: none */
    const oos_exact *exact;      /* the engine took the command, and resolved this; NULL: it was not asked */
} oos_start;

/* What is read of an engine's data once. */
typedef struct oos_engine_facts {
    oos_flag_table flags;
    oos_rule_book *rules;
    oos_torch_builds torch;
    const oos_ladder *ladder;
    const oos_learned_terms *terms; /* of starts of the installed release; NULL: none were made */
    oos_view architectures,
        quantization; /* of the installed release, as it listed them; empty: it was not asked */
} oos_engine_facts;

/* The command behind the list of arguments that an engine prints when it starts. */
typedef struct oos_logged_command {
    const char **words;
    size_t count;
    oos_version version; /* 0: the list does not tell */
} oos_logged_command;

/* The devices that a command takes: its own product of sizes. */
typedef struct oos_ranks {
    uint64_t here; /* ranks on one machine, each on a device of its own */
    uint64_t
        reach; /* devices that the machine must have for them: the highest number that one takes, and one */
    const char *device; /* the word of a flag that says what kind of device; NULL */
} oos_ranks;

typedef struct oos_engine {
    const oos_engine_words *words;
    const oos_dialect *dialect;
    oomsight_status (*book_load)(oos_arena *arena, const char *data_dir, oos_rule_book **ret_book,
                                 oomsight_error *reterr);
    /* Of the PyTorch that a release pins; 0: not known. NULL: nor for any. */
    uint64_t (*torch_minor)(const oos_rule_book *book, oos_version version);
    oos_ranks (*ranks)(const oos_serve *serve);
    /* All of the plan but its release, notes, fixes and inert flags. */
    oomsight_status (*plan)(oos_arena *arena, const oos_start *start, const oos_engine_facts *facts,
                            oos_plan *ret_plan, oomsight_error *reterr);
    /* Fixes, answers, needs and inert flags of a plan of this engine. `scratch` is reset at will. `gpus` NULL: of all that the least
     * change of flags alone, if any is enough. */
    oomsight_status (*solve)(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                             oomsight_error *reterr);
    /* The choices of a plan: every device on which it starts. NULL: not for this engine. */
    oomsight_status (*choose)(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                              const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                              oomsight_error *reterr);
    /* False: the text is no such list, or is cut off. NULL: the log's command is read by command/words.c. */
    bool (*logged)(oos_arena *arena, const oos_flag_table *flags, const char *text,
                   oos_logged_command *ret_command);
} oos_engine;

#define ENGINE(name) extern const oos_engine oos_engine_##name;
#include "facts/engine.def"
#undef ENGINE

/* NULL: no such engine. */
const oos_engine *oos_engine_find(const oos_engine_words *words);

/* The engine of that name; NULL: the one whose command it is, or the default. */
const oos_engine *oos_engine_asked(const char *name, const char *const *words, size_t count);

oomsight_status oos_engine_facts_load(oos_arena *arena, const oos_engine *engine, const char *data_dir,
                                      oos_engine_facts *ret_facts, oomsight_error *reterr);

/* A command of one engine, said to another: data/engines/meanings.json has the flags that mean the same. */

typedef struct oos_translation {
    const char *const *words; /* NAME serve MODEL [flags] */
    size_t count;
    const char *const *left_out; /* a sentence for every flag that moves memory and has no word there */
    size_t left_out_count;
} oos_translation;

oomsight_status oos_translate(oos_arena *arena, const char *data_dir, const oos_engine *from,
                              const oos_serve *serve, const oos_engine *to, oos_translation *ret_translation,
                              oomsight_error *reterr);
