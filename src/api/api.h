#pragma once
#include "base/params.h"
#include "base/sha256.h"
#include "base/table.h"
#include "base/text.h"
#include "dryrun/dryrun.h"
#include "engines/engines.h"
#include "explain/explain.h"
#include "facts/facts.h"
#include "ledger/ledger.h"
#include "machine/machine.h"
#include "matrix/matrix.h"
#include "model/model.h"
#include "oomsight_private.h"
#include "plan/plan.h"
#include "report/report.h"
#include "run/run.h"
#include <pthread.h>

/* What the files of the API layer share: the insides of public handles. */

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
    const char *name; /* that it was opened by */
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

/* What check.c, check_plan.c and check_beside.c share. */

/* A device of the machine that a file describes, and what commands of the file hold of it. */
typedef struct oos_check_device {
    uint32_t shares;   /* of oos_found */
    const char *token; /* "0", or a name */
    uint64_t held_bytes;
    const char *names;
    uint64_t most_bytes; /* by one of them */
    size_t most_at;      /* ... which, among the commands of its file */
} oos_check_device;

/* An answer, by all that was asked for it. */
typedef struct oos_check_known {
    const char *asked;
    oos_checked_plan *plan;
    const char *problem, *model;
    UT_hash_handle hh;
} oos_check_known;

struct oomsight_check {
    oos_arena *arena;
    oomsight_check_told *told; /* NULL: nobody waits for it */
    void *told_data;
    oos_checked *list;
    size_t count, room, files;
    const oomsight_asker *asker; /* NULL: nobody asks the installed engine */
    size_t failing;      /* plans so far: the search for what helps costs most, and many alike need it once */
    const char **looked; /* files that were read */
    size_t looked_count, looked_room;
    const char *folder; /* that is searched, without links in it; "": none is */
    const char **named; /* files that others take as they are */
    size_t named_count, named_room;
    oos_check_device *devices; /* of the file that is being read */
    size_t device_count, device_room;
    oos_check_known *known; /* answers by what was asked */
};

/* One more of a list that doubles: false when out of memory. */
bool oos_check_grow(oos_arena *arena, void **list, size_t count, size_t *room, size_t item_bytes);

/* A place in the list; NULL when out of memory. */
oos_checked *oos_check_next(oomsight_check *check);

/* Plan one command of a file and keep what a report needs of it. `found` need not outlive the call. */
void oos_check_command(oomsight_check *check, const oomsight_check_params *params, const char *path,
                       const oos_found *found, size_t at);
void oos_check_forget(oomsight_check *check);

/* The question that a command of a file is; *ret_problem: why it cannot be asked. */
void oos_check_params(oos_arena *arena, const oomsight_check_params *params, const oos_found *found,
                      oomsight_plan_params *ret, const char **ret_problem);

/* Its answer, made once; NULL when out of memory. */
const oos_check_known *oos_check_plan(oomsight_check *check, const oomsight_check_params *params,
                                      const oos_found *found, oomsight_plan_params *plan_params);

/* The fullest of the first `ranks` devices that a command sees; NULL: nobody else is there. */
const oos_check_device *oos_check_fullest(oomsight_check *check, const oos_found *found, uint64_t ranks);

/* From now on this command of the file holds so much of each of them. */
void oos_check_hold(oomsight_check *check, const oos_found *found, size_t at, uint64_t ranks, uint64_t bytes);

/* All commands of the file are planned, those behind `from` of the list: where one of two does not start beside the other, both are changed
 * if that lets both start. */
void oos_check_room(oomsight_check *check, const oomsight_check_params *params, const oos_found *list,
                    size_t from);

/* What the two ways of explaining share: a whole log, and one that grows. */

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

/* What is built in, cached or in a local folder tells whether a model has an encoder. */
void oos_api_knows_models(const oomsight_data *data, oos_knowledge *knowledge);

/* The device that fits, and what plan says of the set-up that the log names. */
void oos_api_note_incident(oos_arena *arena, const oomsight_data *data, int allow_hub,
                           const oos_incident *incident, oos_incident_notes *notes);

/* tell.c: incidents of texts that grow, one after another; `text` is what was told and not yet delivered. */
typedef struct oos_told_kind oos_told_kind;
typedef struct oos_teller {
    oos_arena *notes; /* of the incident being told */
    const oomsight_data *data;
    int allow_hub;
    oomsight_render_params render;
    oos_text text;
    size_t incidents;
    bool found_oom, each; /* each: in full, however often it comes */
    oos_told_kind *kinds;
} oos_teller;

void oos_api_tell(oos_teller *teller, const oos_incident_source *source, const oos_incident *incident);
oomsight_status oos_api_told(oos_teller *teller, const char **ret_text, size_t *ret_bytes,
                             oomsight_error *reterr);
void oos_api_delivered(oos_teller *teller);
void oos_api_tell_no_more(oos_teller *teller); /* frees what is inside */

/* What the files of api_matrix*.c share: the inside of a matrix, its threads and its cache. */

/* One model word of the file, opened once and shared by all points and threads. */
typedef struct oos_matrix_slot {
    const char *name;      /* as the file has it */
    const char *place;     /* what was opened: a directory or an id */
    oomsight_model *model; /* NULL: `problem` */
    const char *problem;
    char digest[65]; /* of its files; "": not known, so that nothing of it is cached */
} oos_matrix_slot;

/* A file of finished points, append-only: what is found in it is never wrong, only missing. */
typedef struct oos_matrix_cache oos_matrix_cache;

typedef struct oos_matrix_crew oos_matrix_crew;
typedef struct oos_matrix_parts oos_matrix_parts;

struct oomsight_matrix {
    oos_arena *arena;
    const oomsight_data *data;
    oos_matrix_file file;
    oos_matrix_slot *slots;
    size_t slot_count;
    const uint32_t **slot_of; /* [block][model] */
    bool allow_hub, lines, diff;
    const oomsight_asker *asker; /* NULL: nobody asks the installed engine */
    unsigned threads;
    oos_matrix_cache *cache; /* NULL: none */
    uint64_t unkept;         /* lines that could not be written to it */
    uint64_t kept;           /* dry starts whose line is in it */
    oos_sha256 base;         /* what every key begins with */
    oos_matrix_crew *crew;   /* NULL: not started */
    oos_matrix_parts *parts; /* NULL: points are answered here */
    uint64_t shard, shards;  /* shards 1: all points */
    oos_matrix_sum *sum;
    oos_arena *scratch; /* of the point that was given last */
    oos_text line;
    oomsight_matrix_point point;
};

/* Labels and numbers of a point without an answer. The label of its flags may be made in `scratch`. */
void oos_matrix_point_begin(const oos_matrix_file *file, const oos_matrix_place *place, uint64_t number,
                            oos_arena *scratch, oomsight_matrix_point *ret_point);

/* Answer a point by planning it; what fails is in the point. Strings go to `scratch`. */
void oos_matrix_point_plan(const oomsight_matrix *matrix, const oos_matrix_place *place, oos_arena *scratch,
                           oomsight_matrix_point *point);

/* Answer it from the JSON of a dry run or from a line of the cache: the fields have the same names. */
bool oos_matrix_point_take(oos_view json, oos_arena *scratch, oomsight_matrix_point *point);

const oos_matrix_slot *oos_matrix_slot_at(const oomsight_matrix *matrix, const oos_matrix_place *place);
const char *oos_matrix_engine_of(const oos_matrix_file *file, const char *version);

/* api_matrix_run.c: threads that plan ahead of the reader, in order. */
oomsight_status oos_matrix_crew_next(oomsight_matrix *matrix, const oomsight_matrix_point **ret_point,
                                     oomsight_error *reterr);
void oos_matrix_crew_free(oos_matrix_crew *crew);

/* matrix_parts.c: answers of other runs. Only those that belong to this matrix: a line of another one is an error. */
oomsight_status oos_matrix_parts_open(oomsight_matrix *matrix, const char *const *paths, size_t count,
                                      oomsight_error *reterr);
oomsight_status oos_matrix_parts_next(oomsight_matrix *matrix, const oomsight_matrix_point **ret_point,
                                      oomsight_error *reterr);
uint64_t oos_matrix_parts_absent(const oos_matrix_parts *parts); /* points that none of them had, so far */
void oos_matrix_parts_close(oos_matrix_parts *parts);            /* NULL is fine */

/* api_matrix_cache.c */
oomsight_status oos_matrix_cache_open(const char *dir, oos_matrix_cache **ret_cache, oomsight_error *reterr);
void oos_matrix_cache_close(oos_matrix_cache *cache);
oomsight_status oos_matrix_cache_base(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                      oomsight_error *reterr);
/* False: the point has no key. */
bool oos_matrix_cache_key(const oomsight_matrix *matrix, const oos_matrix_place *place, char ret_key[65]);
/* Threads may ask at once. */
/* What other processes have written since is found as well. */
void oos_matrix_cache_refresh(oos_matrix_cache *cache);
/* Nobody else with this cache answers this key meanwhile. False: somebody is at it. Ends with the process at the latest. */
bool oos_matrix_cache_claim(oos_matrix_cache *cache, const char *key);
void oos_matrix_cache_release(oos_matrix_cache *cache, const char *key);
bool oos_matrix_cache_find(const oos_matrix_cache *cache, const char *key, oos_arena *scratch,
                           oomsight_matrix_point *point);
/* False: it cannot be written, and no further one is tried; the run goes on. */
bool oos_matrix_cache_keep(oos_matrix_cache *cache, const char *key, const oomsight_matrix_point *point);
void oos_matrix_model_digest(oos_arena *arena, oos_matrix_slot *slot);

/* What the files of planning share: the handle, and the steps that plan.c takes one after the other. */

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
    const char *const *words; /* the command as it was read */
    size_t word_count;
    bool release_named;          /* by the command, or beside it */
    oos_translation translation; /* count 0: the command was in this engine's words */
    const char **fix_flags;      /* of each fix; formed once: accessors change nothing */
    const oos_edited_word
        *edited; /* the first fix, by the words of the command; NULL: it cannot be said so */
    size_t edited_count;
};

/* A plan while it is made: what was asked for, and what was taken where nothing was said. */
typedef struct oos_plan_ask {
    const oomsight_plan_params *params;
    const oos_machine *machine; /* NULL: not looked at */
    const char *const *words;   /* the command, its environment before it, no shell around it */
    size_t word_count;
    oos_ranks ranks;          /* devices that the command takes */
    const char *gpu_note;     /* which device was taken; NULL: the one that was named */
    const char *held;         /* who holds memory of it; NULL: nobody */
    const char *release_from; /* where the release comes from; NULL: it was given */
    const char *newer;        /* why its rules are those of an older one; NULL: they are its own */
    oos_learned compared;     /* its rules beside the installed engine's source; none: not compared */
    const char **changed; /* a sentence for each rule that the plan asks for and whose source has changed */
    size_t changed_count;
    const oomsight_exact *exact; /* NULL: the installed engine was not asked */
    const oos_exact *answer;     /* what it said; NULL: nothing that can be read */
    const oos_learned *learned;  /* what is known of the installed engine; NULL: what the user's cache has */
} oos_plan_ask;

/* oomsight_plan_create() by what was just learned of an engine. */
oomsight_status oos_api_plan_learned(const oomsight_plan_params *params, const oos_learned *learned,
                                     oomsight_plan **ret_plan, oomsight_error *reterr);

/* learned_rests.c: what the terms of `learned` leave open of each start in `probes`, as terms behind those in `text`; in `said` those that are
 * a matter for us. `configs` has the models that were started. */
oomsight_status oos_learned_rests(oos_arena *arena, const oomsight_data *data, const oos_learned *learned,
                                  oos_view probes, oos_view configs, oos_text *text, oos_text *said,
                                  oomsight_error *reterr);

/* plan_words.c: the command in the words of the engine that is planned, and its release. */
oomsight_status oos_ask_words(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);
oomsight_status oos_ask_release(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);

/* A command as its engine reads it. `release` NULL: the newest. False: it does not, or it names no model. */
bool oos_api_serve_read(oos_arena *arena, const oomsight_data *data, const char *const *words, size_t count,
                        const char *release, oos_serve *ret_serve);

/* device.c: the device; once the command is read, how many it takes and sees, and what others hold of that of this machine. */
oomsight_status oos_ask_device(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);
oomsight_status oos_ask_taken(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);
bool oos_ask_is_every_gpu(const oos_plan_ask *ask);

/* plan_exact.c: what the installed engine says of it. */
oomsight_status oos_ask_exact(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr);

/* plan_changed.c: which rules of a learned release the plan asks for and has to doubt. */
oomsight_status oos_ask_changed(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr);

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

/* A guarded run, to those who tell of it. */

struct oomsight_run {
    oos_segment *segment;
    char path[600];       /* of the segment */
    oos_history *history; /* NULL: nobody watches */
    oos_dryrun_log log;   /* an engine prints the same on a real device */
    int alive; /* locked while whoever made the segment lives, in any container; -1: it is not ours */
    oos_process_family *family; /* NULL: nobody has looked */
    unsigned told_unseen;       /* how many of those that are not counted were told */
    oos_serving serving;        /* that it said last; nothing known: not asked, or no answer */
};

uint64_t oos_run_smallest(const oos_segment *segment); /* device; 0: none is known */
