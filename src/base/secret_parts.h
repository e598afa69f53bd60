/* What the files of the redactor share. */
#pragma once
#include "base/ascii.h"
#include "base/secret.h"

#define OOS_HIDDEN "***"
enum {
    OOS_SECRET_NAME_MAX = 80,
    OOS_SECRET_LOOK = 512, /* bytes of a value that decide whether it is one; a longer one is */
    OOS_SECRET_PIECE = 32 << 10,
    OOS_SECRET_AHEAD = 2048 /* of a piece: no secret begins there, so that every decision sees enough */
};

/* A line, or a piece of a long one, as it is looked at. */
typedef struct oos_secret_scan {
    oos_view text;
    const uint32_t *places; /* NULL: it is the line itself */
    unsigned char *hidden;  /* NULL: nobody asks where */
    bool found;
    bool whole;   /* the line ends with it */
    size_t limit; /* secrets begin before */
    oos_secret_state *state;
    size_t run_end, coded_end;   /* of the words in base64 that were measured last */
    size_t word_from, word_end;  /* of the value without quotation marks that was measured last */
    size_t value_from, value_to; /* of `value: x` with no name before it */
    oos_view previous;           /* word */
} oos_secret_scan;

typedef struct oos_secret_value {
    size_t from, to; /* the bytes to be replaced */
    size_t rest;     /* where to look on */
    bool quoted, closed, longer;
} oos_secret_value;

/* How a name and its value are joined, the surest first. */
typedef enum oos_join_how {
    OOS_JOIN_ASSIGNED, /* `=`, `:` */
    OOS_JOIN_BLANK,    /* `--flag x`, `setenv NAME x` */
    OOS_JOIN_LISTED,   /* `"--flag", "x"` */
    OOS_JOIN_CELL,     /* `| NAME | x |` */
    OOS_JOIN_BESIDE,   /* `NAME -> x`, `("NAME", "x")` */
    OOS_JOIN_TOLD,     /* `NAME is x` */
    OOS_JOIN_NEXT      /* the next word */
} oos_join_how;

typedef struct oos_secret_join {
    size_t begin; /* of the value; 0: nothing joins them */
    oos_join_how how;
} oos_secret_join;

/* secret_joins.c: behind the name at [from, at). */
oos_secret_join oos_secret_join_at(const oos_secret_scan *scan, size_t from, size_t at);
size_t oos_secret_word_end(oos_view text, size_t at, size_t most);
/* A quotation mark, with the backslashes of a text inside a text before it: its bytes, 0 when there is none. */
size_t oos_secret_quote_at(oos_view text, size_t at);

/* secret_names.c */
oos_name_kind oos_secret_kind(oos_view name);
/* Of a parameter of an address: nothing there is prose. */
oos_name_kind oos_secret_parameter_kind(oos_view name);
bool oos_secret_word_is(oos_view word, const char *other); /* whatever the case of its letters */
bool oos_secret_word_among(oos_view word, const char *const *words);
bool oos_secret_last_is(oos_view name, const char *segment);
/* May `value` behind such a name be shown? */
bool oos_secret_value_counts(oos_name_kind kind, oos_view value, bool quoted);
/* `$HF_TOKEN`, `${X}`, `{{ x }}`, `<token>`, `***`: not the secret, but where it would stand. */
bool oos_secret_is_reference(oos_view value);
bool oos_secret_is_stop_word(oos_view value);
bool oos_secret_looks_random(oos_view value, size_t least);
bool oos_secret_has_drawn_part(oos_view word,
                               const char *marks); /* between them: twelve letters and digits */
bool oos_secret_is_opaque(oos_view value);         /* nothing but a key looks like this */
bool oos_secret_is_variable(oos_view name);        /* HF_TOKEN */
/* A name in Chinese or another script at `at`: where it ends. */
oos_name_kind oos_secret_foreign_kind(oos_view text, size_t at, size_t *ret_end);

/* secret_shapes.c: at `at` begins something whose shape tells; where to look on, 0: nothing does. */
size_t oos_secret_shape_at(oos_secret_scan *scan, size_t at, char before);
bool oos_secret_decode(oos_view coded, oos_text *to); /* base64; false: it is no text. `to` may be NULL */
/* What began at `from` reaches the end of the line: a terminal may have cut it. */
void oos_secret_note_cut(oos_secret_scan *scan, size_t from);
size_t oos_secret_cut_rest(oos_secret_scan *scan); /* of it, on the next line */
size_t oos_secret_glued_at(oos_secret_scan *scan,
                           size_t at); /* the same in the middle of a word, on its `_` or `-` */
size_t oos_secret_login_at(oos_secret_scan *scan, size_t at); /* on the colon of `://` */
size_t oos_secret_key_end(oos_view text, size_t from);        /* of a private key: its last line; SIZE_MAX */
size_t oos_secret_bot_at(oos_secret_scan *scan, size_t at);   /* on the colon of `123456789:AA...` */

/* secret.c: oos_secret_inside() of what was found in base64 in base64. */
bool oos_secret_inside_deep(oos_view text, unsigned depth);

/* secret_values.c: from `from` on; where it ended, at `limit` or behind it. */
size_t oos_secret_scan_words(oos_secret_scan *scan, size_t from);
oos_secret_value oos_secret_value_at(oos_secret_scan *scan, size_t at, bool parameter);
void oos_secret_mark(oos_secret_scan *scan, size_t from, size_t to);
/* The value goes; what of it is behind the end of the text is remembered. */
size_t oos_secret_take(oos_secret_scan *scan, oos_secret_value value);
/* More values behind the first of a flag that takes a list. */
size_t oos_secret_more(oos_secret_scan *scan, size_t at);
size_t oos_secret_open_rest(oos_secret_scan *scan); /* of what the piece before left open */
size_t oos_secret_skip_blanks(oos_view text, size_t at);
bool oos_secret_starts_at(oos_view text, size_t at, const char *words);

/* secret_lines.c: what earlier lines say of this one: from where to scan, SIZE_MAX: it is done. */
size_t oos_secret_line_begin(oos_secret_scan *scan);
void oos_secret_line_end(oos_secret_scan *scan);
bool oos_secret_is_value_line(oos_view line); /* `value: x` */
/* Where the words of a passphrase end that goes on at `at`. */
size_t oos_secret_phrase_end(oos_view text, size_t at);
/* The line after it: `name: HF_TOKEN`. */
oos_name_kind oos_secret_named_by(oos_view line);
/* `|`, `>-`: the value is below. */
bool oos_secret_is_block_mark(oos_view text, size_t at);
/* Is [from, to) the key of a line `key: ...`? Its column. */
bool oos_secret_is_key(oos_view text, size_t from, size_t *ret_column);

static inline bool oos_secret_name_byte(char c)
{
    return oos_is_alnum(c) || c == '_' || c == '-' || c == '.';
}

static inline oos_view oos_secret_between(oos_view text, size_t from, size_t to)
{
    return oos_view_slice(text, from, to > from ? to - from : 0);
}

static inline bool oos_secret_in_set(char c, const char *set)
{
    return c && strchr(set, c) != NULL;
}
