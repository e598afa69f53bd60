/* What the files that read the serve command share. Private to command/serve*.c. */
#ifndef OOS_INPUT_SERVE_PARTS_H
#define OOS_INPUT_SERVE_PARTS_H

#include "base/json.h"
#include "command/serve.h"

/* A flag whose value is JSON is read once, at the end: the last text given counts, and dotted keys, when there are
 * any, replace the text as a whole (vLLM's parser appends them as one more JSON argument). */
typedef struct oos_serve_pending {
    struct oos_serve_pending *next;
    const oos_flag_record *record;
    const char *text; /* NULL: none */
    json_t *dotted;   /* NULL: none; the arena's */
} oos_serve_pending;

typedef struct oos_serve_reader {
    const oos_dialect *dialect;
    oos_arena *arena;
    const oos_flag_table *table;
    oos_version version;
    oos_serve *serve;
    oomsight_error *reterr;
    oos_given_flag *flags;
    size_t flag_count, flag_capacity;
    const char *positional, *model_option;
    oos_serve_pending *pending;
    json_t *rope;   /* --rope-scaling and --rope-theta, which are overrides of the config; NULL: none */
    bool bench;     /* flags we do not know may be the benchmark's own */
    bool python;    /* LLM(...) */
    bool ambiguous; /* a beginning of several flags was met */
    const char *stray_of, *stray; /* a switch that was given a value, and the value; NULL: none */
    const char *stray_meant;      /* the switch that says it; NULL: nothing does */
    size_t first_word; /* flags are noted with their place among the words of the command, from this one on */
} oos_serve_reader;

oomsight_status oos_serve_enter(oos_serve_reader *in, const char *const *words, size_t count,
                                oos_serve_entry *ret_entry, oos_engine_env *env);

/* A command read from its words, with the entry and the notes of `old`. */
oomsight_status oos_serve_read_words(oos_arena *arena, const oos_serve *old, const oos_serve_words *words,
                                     oos_serve *ret_serve, oomsight_error *reterr);

/* Is the release newer than all whose parser was read? Then a name that they do not know is not thereby refused. */
bool oos_serve_newer(const oos_serve_reader *in);

/* Note a flag. The list was taken large enough for every word. */
void oos_serve_note(oos_serve_reader *in, oos_given_flag flag);

/* The parser would stop here; only the first such place is kept. Always OOMSIGHT_OK, so that it can be returned. */
oomsight_status oos_serve_refuse(oos_serve_reader *in, const char *flag, const char *value,
                                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A flag as argparse names it in its complaints: all of its spellings, "--tensor-parallel-size/-tp". */
const char *oos_serve_argument(const oos_serve_reader *in, const oos_flag_record *record);

/* A known flag with its value (NULL: none), typed and noted. */
oomsight_status oos_serve_take(oos_serve_reader *in, oos_flag_hit hit, const char *value);

/* A word for yes or no. */
bool oos_serve_truth(const char *word, bool *ret_value);

/* The switch that says what `--switch=value` means: itself or its twin; NULL: the flag left out, or nobody knows. */
const char *oos_serve_switch_meant(oos_flag_hit hit, const char *value);

/* `flag.key.key value` of a JSON flag. */
oomsight_status oos_serve_take_dotted(oos_serve_reader *in, oos_flag_hit hit, const char *keys,
                                      const char *value);

/* JSON of a flag that is not modelled: is it any? */
oomsight_status oos_serve_check_json(oos_serve_reader *in, oos_flag_hit hit, const char *text);

/* Keys and kinds inside a value that the release turns into a class. */
oomsight_status oos_serve_check_keys(oos_serve_reader *in, oos_flag_hit hit, const json_t *value);

/* Is the value turned into a class while the command is read? */
bool oos_serve_has_class(const oos_serve_reader *in, oos_flag_hit hit);

/* Read what is pending. */
oomsight_status oos_serve_finish_json(oos_serve_reader *in);
oos_serve_pending *oos_serve_pend(oos_serve_reader *in,
                                  const oos_flag_record *record); /* NULL: out of memory */

json_t *
oos_serve_rope(oos_serve_reader *in); /* in->rope, made when it is first asked for; NULL: out of memory */

/* `LLM(model="x", n=4)` or `model=x n=4`. */
oomsight_status oos_serve_take_keywords(oos_serve_reader *in, const char *text);

/* Numbers as the engine's parser takes them; false: not one. */
bool oos_serve_float(const char *text, double *ret_value);

/* "1 2 4" or "[1, 2, 4]"; false: something else is in it. */
bool oos_serve_ints(oos_arena *arena, const char *text, const uint64_t **ret_list, size_t *ret_count);

#endif
