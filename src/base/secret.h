/* Secrets: values of tokens, keys and passwords, found by the name before them (flags, variables, fields of JSON and YAML,
 * headers, parameters of addresses), by the place they stand in (`user:password@host`, `data` of a Kubernetes Secret, the
 * lines of a private key) or by their own shape (`hf_...`, `sk-...`, `AKIA...`). What is found is replaced by `***` behind a
 * name, `hf_***` where only the shape tells, so that a reader sees that something stood there. A reference such as
 * `$HF_TOKEN` is no secret and stays.
 *
 * Everything that quotes somebody's command, file or log passes through here before it leaves the process. */
#pragma once
#include "base/arena.h"
#include "base/text.h"

/* How much a name says of the value behind it. */
typedef enum oos_name_kind {
    OOS_NAME_PLAIN,
    OOS_NAME_RANDOM,     /* hidden when it is long and of letters and digits: auth */
    OOS_NAME_WEAK,       /* ... or quoted and no number: token */
    OOS_NAME_NUMBERLESS, /* anything but a number: access_token, as engines count tokens */
    OOS_NAME_PATHLESS,   /* anything but a path or a number of fewer than eight digits: ANY_KEY */
    OOS_NAME_LONG,       /* anything but such a number: API_KEY, HF_TOKEN */
    OOS_NAME_SURE        /* anything: password */
} oos_name_kind;

/* What the lines so far say of the next one. All zero in the beginning. */
typedef struct oos_secret_state {
    struct {
        enum {
            OOS_OPEN_NONE,
            OOS_OPEN_QUOTE,
            OOS_OPEN_WORD,
            OOS_OPEN_RUN,
            OOS_OPEN_LINE,
            OOS_OPEN_LIST
        } kind;
        char mark;        /* of a quotation */
        unsigned slashes; /* before the mark */
        const char *more; /* bytes of a run beside letters and digits */
        unsigned lines;   /* that it may still take */
    } open;               /* a value whose end has not been seen */
    struct {
        enum { OOS_NEXT_NONE, OOS_NEXT_CONTINUED, OOS_NEXT_ITEM, OOS_NEXT_QUOTED, OOS_NEXT_LONE } form;
        bool more; /* the flag takes a list */
        oos_name_kind kind;
    } next; /* a flag at the end of a line: its value is on the next */
    struct {
        enum { OOS_BLOCK_NONE, OOS_BLOCK_SCALAR, OOS_BLOCK_BELOW } form;
        size_t indent; /* of its key: lines that stand deeper belong to it */
        oos_name_kind kind;
    } block;
    struct {
        oos_name_kind kind;
        unsigned lines; /* how many more may come between `name:` and `value:` */
        bool below;     /* the name stands below the value */
    } pair;
    struct {
        enum { OOS_KIND_UNKNOWN, OOS_KIND_SECRET, OOS_KIND_OTHER } kind;
        bool api;     /* `apiVersion:` was seen */
        bool in_data; /* below `data:` */
        bool sure;    /* ... or `stringData:`, which only Secrets have */
        size_t indent;
    } document;
    struct {
        bool open;
        unsigned quiet;     /* lines since the last that was part of it */
        unsigned ppk_lines; /* of PuTTY's form, still to come */
    } key;
    unsigned programs;    /* words of this command line that give `-u` or `-p` a meaning */
    unsigned netrc_lines; /* behind `machine` */
    struct {
        unsigned missing; /* bytes of a token that the end of the line cut off; 0: not known */
        size_t width;     /* of that line; 0: nothing was cut */
        unsigned marks;   /* bytes beside letters and digits that it had, as bits */
    } cut;
    unsigned depth;       /* of text in base64 */
    unsigned since_login; /* words since `login` */
    char before;          /* the last byte of the piece before; 0: a line begins */
} oos_secret_state;

/* Text that comes in pieces. Holds one line at most, and of a long line its last 32 KiB: what has been decided leaves at once. */
typedef struct oos_redactor {
    oos_secret_state state;
    oos_text line;   /* that is not complete yet */
    oos_text held;   /* `value: x`, until the next line says whose */
    oos_text clean;  /* the line without colours, zero-width characters and %XX */
    oos_text places; /* where each of its bytes stood, uint32_t */
    oos_text hidden; /* a byte for each of them: not to be shown */
    bool found;      /* something was hidden */
    bool dotted;     /* the piece before ended within something hidden */
} oos_redactor;

/* Append to `to` what of the text so far is decided. The result does not depend on how the text is cut into pieces. */
void oos_redactor_feed(oos_redactor *redactor, oos_view piece, oos_text *to);
/* Nothing more comes. Append the rest; the redactor is new again. */
void oos_redactor_finish(oos_redactor *redactor, oos_text *to);
void oos_redactor_free(oos_redactor *redactor);

/* Append `text` without its secrets. */
void oos_secret_hide(oos_text *to, oos_view text);

/* Is there one? Cheaper than hiding. */
bool oos_secret_inside(oos_view text);

/* `text` itself when there is none, else a copy without; NULL stays NULL, and is the answer when memory ends. */
const char *oos_secret_hidden(oos_arena *arena, const char *text);

/* The words of a command: also the word behind `--api-key`, and all behind it up to the next flag, as it takes a list.
 * `words` itself when there is nothing to hide. */
const char *const *oos_secret_hidden_words(oos_arena *arena, const char *const *words, size_t count);

/* Does a flag, variable or field of this name hold a secret? `--api-key`, `HF_TOKEN`, `clientSecret`; not
 * `max_tokens`, `tokenizer`, `eos_token`, `secretName`. */
bool oos_secret_name(oos_view name);
