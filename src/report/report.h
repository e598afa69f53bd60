#pragma once
#include "base/json_write.h"
#include "base/text.h"
#include "command/command.h"
#include "dryrun/dryrun.h"
#include "explain/explain.h"
#include "facts/facts.h"
#include "ledger/ledger.h"
#include "machine/machine.h"
#include "matrix/matrix.h"
#include "oomsight_private.h"
#include "plan/plan.h"
#include "replay/replay.h"
#include "run/run.h"

/* A plan as text, JSON and Markdown. */

void oos_report_plan_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params);
void oos_report_plan_json(oos_text *text, const oos_plan *plan);
void oos_report_plan_markdown(oos_text *text, const oos_plan *plan, const oomsight_render_params *params);

/* Which GPU does it take: the choices of a plan. JSON: oomsight.choices/1. */
void oos_report_choices_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params);
void oos_report_choices_json(oos_text *text, const oos_plan *plan);
void oos_report_choices_html(oos_text *text, const oos_plan *plan, const oomsight_render_params *params);
/* One row: so many cards of that size, with the same flags. */
bool oos_choice_same_row(const oos_need_gpu *a, const oos_need_gpu *b);
bool oos_choice_begins_row(const oos_plan *plan, size_t at);
unsigned long long oos_choice_gib(const oos_need_gpu *choice);
typedef struct oos_choice_row {
    uint64_t least, most; /* tokens, of its GPUs */
    size_t count, certain;
} oos_choice_row;
oos_choice_row oos_choice_row_of(const oos_plan *plan, size_t first);
void oos_choice_tokens(char *ret_cell, size_t capacity, uint64_t tokens); /* "-": the model has no cache */
const char *oos_choice_name(const char *name); /* as people call it, without the maker */

/* Several plans of one command side by side. */
void oos_report_plans(oos_text *text, const oos_plan *const *plans, size_t count,
                      const oomsight_render_params *params);

/* The rows of that comparison that differ, each an object of the array that is open. */
struct oos_json_writer;
void oos_report_plan_changes(struct oos_json_writer *writer, const oos_plan *before, const oos_plan *after);

const char *oos_report_verdict_word(oomsight_verdict verdict); /* "fits", "tight", ... */

/* What people read: "will start", "will probably start", ..., "unknown". The second in capitals. */
const char *oos_report_answer_word(const oos_plan *plan);
const char *oos_report_answer_heading(const oos_plan *plan);

/* What stands behind the heading: "not enough KV cache for one request"; "" where there is nothing to say. */
void oos_report_reason(const oos_plan *plan, char *ret_words, size_t size);

/* "(20 % chance)" of starting; false: the answer is sure, or the chance about one in two. */
bool oos_report_chance(const oos_plan *plan, char *ret_words, size_t size);

/* "fixes": [...], also of an explanation. */
void oos_report_fixes_json(struct oos_json_writer *w, const oos_fix *fixes, size_t count);

/* A probability, or null where nobody can tell. */
void oos_report_probability_json(struct oos_json_writer *w, const char *key, double probability);

/* "this GPU with Qwen/Qwen3-32B-AWQ (18.1 GiB, 7,360 KV tokens)" */
const char *oos_report_named(const oos_need_checkpoint *need, char *words, size_t size);

/* "about 16.9 GiB: 4 bit, leaves 12,345 tokens"; NULL: there is no such checkpoint. */
const char *oos_report_checkpoint(const oos_needs *needs, char *words, size_t size);

/* The words of a fix, quoted for a shell. NULL when out of memory. */
const char *oos_report_plan_change(oos_arena *arena, const oos_fix *fix);
void oos_report_change(oos_text *text, const oos_fix *fix);

/* A model as people call it: the last part of its path, and of a folder of the Hugging Face cache the name it was asked for
 * by, not the commit. */
const char *oos_report_model_name(const char *path, char *name, size_t size);

/* One command over releases: what each said, and where the answer moved. */

/* What a release says of the command. */
typedef struct oos_bisect_step {
    const char *version;
    bool answered; /* false: not asked yet, or nothing came of it */
    bool starts;   /* certainly or likely */
    oomsight_verdict verdict;
    const char *answer; /* "starts", "likely fails", ... */
    const char *phase;  /* NULL: none fails */
    const char *why;    /* NULL: nothing to tell */
    uint64_t kv_tokens;
    uint64_t need_bytes;  /* of the phase that fails; 0: none fails, or not known */
    const oos_plan *plan; /* NULL: a dry start */
} oos_bisect_step;

typedef enum oos_bisect_moved {
    OOS_BISECT_NOTHING,
    OOS_BISECT_ANSWER,
    OOS_BISECT_PHASE, /* it fails on both sides, in another phase */
    OOS_BISECT_NEED,  /* ... in the same phase, which needs another size */
    OOS_BISECT_TOKENS
} oos_bisect_moved;

typedef struct oos_bisect_result {
    const char *good, *bad;
    bool by_dryrun, newer_is_good;
    double moved_ratio;           /* of KV tokens: less is not told */
    const oos_bisect_step *steps; /* oldest first */
    size_t count;
    oos_bisect_moved moved;
    size_t before, found; /* steps on both sides of the move */
    bool between;         /* releases lie between the two that were not asked */
} oos_bisect_result;

void oos_report_bisect_text(oos_text *text, const oos_bisect_result *result,
                            const oomsight_render_params *params);
void oos_report_bisect_json(oos_text *text, const oos_bisect_result *result);

/* Two figures that differ by more than `ratio` of the larger. */
bool oos_bisect_apart(uint64_t one, uint64_t other, double ratio);

/* Colour, bars and wrapped paragraphs for a terminal; plain text when it is none. Words are given in English and printed
 * in the reader's language (words.h). */

typedef enum oos_ink {
    OOS_INK_PLAIN,
    OOS_INK_GOOD,
    OOS_INK_BAD,
    OOS_INK_WARN,
    OOS_INK_DIM,
    OOS_INK_BOLD
} oos_ink;

typedef struct oos_style {
    oos_text *text;
    unsigned width; /* columns */
    bool color, ascii, chinese;
} oos_style;

static inline double oos_gib(uint64_t bytes)
{
    return (double)bytes / 0x1p30;
}

oos_style oos_style_of(oos_text *text, const oomsight_render_params *params);

void oos_style_ink(const oos_style *style, oos_ink ink, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same without colour. */
void oos_style_put(const oos_style *style, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What somebody else called it: word for word, fit to be shown (base/shown.h). */
void oos_style_word(const oos_style *style, const char *word);

/* Words in a column of a table: `columns` wide at least, to the right of it when negative. */
void oos_style_cell(const oos_style *style, int columns, const char *words);

/* Colour on and off, around what is put by other means. */
void oos_ink_begin(const oos_style *style, oos_ink ink);
void oos_ink_end(const oos_style *style, oos_ink ink);

/* A table, row by row, its head first. `kept`: so many columns stand again before every block, where not all columns fit. */
typedef struct oos_cell {
    oos_text text;
    unsigned columns;
    oos_ink ink;
} oos_cell;

typedef struct oos_table {
    size_t columns, kept;
    unsigned indent, right; /* a bit for each column that is aligned to the right */
    oos_cell *cells;
    size_t count, capacity;
    bool failed;
} oos_table;

void oos_table_put(oos_table *table, const oos_style *style, oos_ink ink,
                   const char *words);                        /* NULL, "": a dash */
void oos_table_end(oos_table *table, const oos_style *style); /* prints and frees it */

/* Words filled into lines of the style's width, each behind `indent` spaces. */
void oos_style_paragraph(const oos_style *style, unsigned indent, const char *words);

/* The same with the lines behind the first further in: what is quoted ends where they do. */
void oos_style_hanging(const oos_style *style, unsigned indent, const char *words);

/* The same for what somebody else said: word for word. */
void oos_style_quote(const oos_style *style, unsigned indent, const char *words);

/* `used` of `total` as a bar of `cells` cells; what goes beyond is marked. */
void oos_style_bar(const oos_style *style, uint64_t used, uint64_t total, unsigned cells, oos_ink ink);

/* "12,345" */
void oos_style_count(char *ret_text, size_t capacity, uint64_t number);

/* A check of deployment files on paper: text for people, JSON, annotations of a GitHub job, SARIF. */

typedef enum oos_level { OOS_LEVEL_OK, OOS_LEVEL_NOTE, OOS_LEVEL_WARNING, OOS_LEVEL_ERROR } oos_level;

/* What a report prints of a plan. */
typedef struct oos_checked_plan {
    oomsight_verdict verdict;
    bool likely;      /* it starts, or likely starts */
    const char *word; /* "starts", "likely fails" */
    oos_phase phase;
    oos_cause cause;
    const char *reason; /* in few words; NULL: none */
    const char *why;    /* NULL when it fits */
    oos_u64 tried_bytes;
    const char *device, *engine, *engine_version;
    const char *exact,
        *exact_said; /* "taken" by the installed engine, and in words; NULL: it was not asked */
    uint64_t total_bytes;
    uint64_t ranks;                       /* devices that it takes */
    uint64_t weights_bytes;               /* on one of them */
    uint64_t held_bytes;                  /* of one of them, once it serves, with what others hold */
    const char *best_flags;               /* NULL: none found */
    const char *best_command;             /* NULL: none found */
    const struct oos_edited_word *edited; /* ... as words of the file; NULL: it cannot be said so */
    size_t edited_count;
} oos_checked_plan;

/* One command and what became of it. */
typedef struct oos_checked {
    const char *path;
    const oos_found *found;
    size_t at;                    /* among the commands of its file */
    const oos_checked_plan *plan; /* NULL: not planned */
    const char *problem;          /* why not */
    const char *engine, *model;   /* names; the model may be NULL: not told */
    const char *const *ask; /* words behind `oomsight plan` that ask the same; NULL: it cannot be asked */
    size_t ask_count;
    const char *beside;    /* commands of the same file on the same device; NULL: none */
    uint64_t beside_bytes; /* ... what they hold of it */
    const oos_checked_plan
        *mend; /* what is suggested so that it and `mate` both start; NULL: each is by itself */
    const oos_found *mate;
    bool first;                /* ... if this one is started before `mate` */
    uint64_t host_needs_bytes; /* more host memory than its container may have; 0: it is not so */
    bool doubt;                /* no command: `problem` says what was not looked at */
    oos_level doubt_level;
    bool left_out; /* ... by the file's own word, or without a sign of an engine: only --strict refuses it */
} oos_checked;

/* The plan's answer, in the arena; NULL when out of memory. The flags may be NULL. */
oos_checked_plan *oos_checked_plan_keep(oos_arena *arena, const oos_plan *plan, const char *best_flags,
                                        const char *best_command);

typedef struct oos_check_page {
    const oos_checked *list;
    size_t count, files;
} oos_check_page;

void oos_report_check_text(oos_text *text, const oos_check_page *page, const oomsight_render_params *params);
void oos_report_check_json(oos_text *text, const oos_check_page *page);
void oos_report_check_html(oos_text *text, const oos_check_page *page, const oomsight_render_params *params);

/* A file as a patch of it, for `patch -p0`, below what is said of its commands: lines that begin with `#`. `why`: for each of them why the
 * file stays as it is, NULL: it changes. */
void oos_report_check_patch(oos_text *text, const oos_patch *patch, const oos_checked *list,
                            const char *const *why, size_t count);
void oos_report_check_github(oos_text *text, const oos_check_page *page);
void oos_report_check_sarif(oos_text *text, const oos_check_page *page);

oos_level oos_check_level(const oos_checked *checked);
/* The plan whose suggestion is for this command; NULL: there is no plan. */
const oos_checked_plan *oos_checked_mend(const oos_checked *checked);
/* What helps, in words before its command; of two commands on one device, what lets both start. */
void oos_checked_mend_put(const oos_style *style, const oos_checked *checked);
const char *oos_check_level_word(oos_level level); /* "ok", "note", "warning", "error" */
/* "out of memory in cudagraph_profile on ...", with why it is so. */
void oos_check_sentence(oos_text *text, const oos_checked *checked);

/* What annotations of a GitHub job and SARIF need whatever they tell of. Used by *_ci.c. */

/* Workflow commands end at a line break; percent signs and breaks are escaped, in properties commas and colons too (GitHub,
 * workflow-commands). */
void oos_ci_escaped(oos_text *text, const char *words, bool property);

/* A SARIF log of one run: open, write the rules, turn to the results, write them, close. */
void oos_sarif_open(oos_json_writer *w);
void oos_sarif_results(oos_json_writer *w);
void oos_sarif_close(oos_json_writer *w);

void oos_sarif_words(oos_json_writer *w, const char *key, const char *words); /* "key": {"text": words} */
void oos_sarif_place(oos_json_writer *w, const char *path, uint64_t first_line, oos_u64 last_line);

/* The machine we run on, for an issue. */

void oos_report_doctor_text(oos_text *text, const oos_machine *machine, const oomsight_render_params *params);

/* oomsight.doctor/1 (docs/reference/formats/doctor.md) */
void oos_report_doctor_json(oos_text *text, const oos_machine *machine);

/* A dry run as text and JSON. */

void oos_report_dryrun_text(oos_text *text, const oos_dryrun *run, const oomsight_render_params *params);
void oos_report_dryrun_json(oos_text *text, const oos_dryrun *run);

/* Explanations on paper: text for people, JSON per the contract, Markdown, GitHub annotations, SARIF; and the knowledge
 * base as a table or a page. */

/* What the rest of the program found out about an incident: pieces of text, NULL where there is nothing. */
typedef struct oos_incident_notes {
    const char *gpu_guess;    /* device whose total matches, when the log names none */
    bool gpu_sure;            /* no other device shows this total: the name may be told */
    const oos_fix *fixes;     /* of a plan for this very model and device that fails alike */
    size_t fix_count;         /* 0: there is no such plan, or it has none */
    const char *plan_flags;   /* the best of them, pasteable */
    const char *plan_check;   /* does plan reproduce the logged figures: a sentence */
    const char *const *inert; /* flags of which that plan says that no value gets past the failure */
    size_t inert_count;
} oos_incident_notes;

/* Where an incident of a growing log was, and when. */
typedef struct oos_incident_source {
    uint64_t id;
    const char *fixes; /* of the like that was told in full, as a member of JSON; NULL: its own */
    uint64_t repeats;  /* the id of the like that was told in full; 0: this is one */
    int64_t seen;      /* when it is told */
    const char *path;  /* of the log */
    const oos_origin *origin;
    const char *cursor; /* of a stream, where it begins, as JSON; NULL: of a file */
    const oos_label *labels;
    size_t label_count;
} oos_incident_source;

typedef struct oos_explain_page {
    const oos_explanation *explanation;
    const oos_incident_notes *notes; /* one per incident */
    const char *path;                /* of the input, for annotations; NULL: none */
    bool chinese;
    bool whole;                        /* all of it; else what fits a screen */
    const oos_incident_source *source; /* of all its incidents; NULL: not followed */
} oos_explain_page;

/* The member `fixes` of that JSON; NULL: no memory. */
const char *oos_report_explain_fixes(oos_arena *arena, const oos_incident *incident,
                                     const oos_incident_notes *notes);
void oos_report_explain_json(const oos_explain_page *page, oos_text *text); /* one object per line */
void oos_report_explain_text(const oos_explain_page *page, const oos_style *style);
void oos_report_explain_markdown(const oos_explain_page *page, const oos_style *style);
void oos_report_explain_github(const oos_explain_page *page, oos_text *text);
void oos_report_explain_sarif(const oos_explain_page *page, oos_text *text);

/* Sentences that several of them share. */
void oos_report_cut_notes(const oos_explanation *explanation, const oos_style *style, const char *before,
                          const char *after);
/* The device: as the log names it, or the only one that shows its total; else NULL. */
const char *oos_report_gpu(const oos_incident *incident, const oos_incident_notes *notes);
/* What the text is: `out_of_memory`, `refused`, `failed`, `unfinished`, `no_failure`, and where there is nothing to tell of `nothing_recognised`,
 * `binary`, `empty`. */
const char *oos_report_incident_state(const oos_incident *incident);
bool oos_report_is_unfinished(
    const oos_incident *incident); /* it ends in a stage of the start, and nothing failed */
bool oos_report_is_unread(const oos_incident *incident); /* one of the last three */
const char *oos_report_incident_title(const oos_explain_page *page, const oos_incident *incident);
/* A whole command in lines that a shell takes together. */
void oos_report_command(const oos_style *style, unsigned indent, const char *command);
/* Flags, quoted for a shell. */
void oos_report_advice_change(const oos_advice *advice, oos_text *text);
/* What plan computed for this very model and device names what the advice says not to help. */
bool oos_report_contradicts(const oos_incident_notes *notes, const oos_advice *advice);
/* What plan suggests for this model and device sets the flag of the advice. */
bool oos_report_repeats(const oos_incident_notes *notes, const oos_advice *advice);

void oos_report_kb_list(const oos_kb *kb, const oos_style *style, bool json);
void oos_report_kb_record(const oos_kb_record *record, const oos_style *style, bool json);
/* What helps and what does not, phase by phase; `only` OOS_PHASE_COUNT: every phase, `engine` NULL: every engine. */
void oos_report_kb_phases(const oos_advisers *advisers, oos_phase only, const oos_engine_words *engine,
                          const oos_style *style, bool json);

/* Tables of what is known. */

void oos_report_gpus(oos_text *text, const oos_gpus *gpus, const oomsight_render_params *params);

/* A built-in model, and where it was counted its parameters. */
typedef struct oos_model_row {
    const char *id, *level, *rests_on, *architecture;
    uint64_t wide;
    bool counted;
    oos_parameters parameters;
} oos_model_row;
void oos_report_models(oos_text *text, const oos_model_row *rows, size_t count,
                       const oomsight_render_params *params);

/* One rule book for each engine of oos_engine_list, in its order. */
void oos_report_engines(oos_text *text, const oos_rule_book *const *books,
                        const oomsight_render_params *params);

/* Words that a shell may offer, one a line: "gpu words", "version words", "flag words" of the newest version, "phase words". False: no such list. */
bool oos_report_words(oos_text *text, const char *what, const oos_gpus *gpus, const oos_rule_book *book,
                      const oos_flag_table *flags);

/* The words of a report in the reader's language. Reports are written in English; a sentence that was put together is
 * found in the catalogue (data/lang/zh.json) by its pattern, where {} stands for whatever was put in, and so are the
 * pieces that were put in. What the catalogue does not have stays English. */

/* One sentence of the catalogue; patterns with a label stand first, then the longest. */
typedef struct oos_phrase {
    const char *en, *zh;
} oos_phrase;
extern const oos_phrase oos_phrases_zh[]; /* made by tools/embed_words.py, ends with NULL */

/* As asked for, else as LC_ALL, LC_MESSAGES or LANG say. */
bool oos_words_chinese(const oomsight_render_params *params);

/* `english` in Chinese. Blanks and line breaks around it stay. */
void oos_words_put(oos_text *text, oos_view english);

/* How many columns a terminal gives it: East Asian characters take two. */
unsigned oos_words_columns(oos_view words);

/* The character that begins at `words.ptr`: its bytes, and how many columns it takes. */
size_t oos_words_char(oos_view words, unsigned *ret_columns);

/* Reports as one HTML file without network: web/report.html with the JSON of the answer put into it, so that the page
 * shows the very figures of the other formats. Allocator replays have a page of their own (replay_html.c). */

void oos_report_plan_html(oos_text *text, const oos_plan *const *plans, size_t count,
                          const oomsight_render_params *params);
void oos_report_explain_html(oos_text *text, const oos_explain_page *page,
                             const oomsight_render_params *params);
void oos_report_dryrun_html(oos_text *text, const oos_dryrun *run, const oomsight_render_params *params);

/* How the text for readers without scripts is printed. */
oomsight_render_params oos_html_plain(const oomsight_render_params *params);

/* What a page of web/ becomes: @DATA@ is the JSON, @TEXT@ (where the page has it) the plain text. In Chinese its end holds the
 * catalogue, with the sentences of `pairs` before it, and a script that looks the page's words up in it. */
typedef struct oos_html_parts {
    const char *page;
    oos_text plain, data; /* given up by oos_html_put_page() */
    bool chinese;
    const oos_phrase *pairs;
    size_t pair_count;
} oos_html_parts;
void oos_html_put_page(oos_text *text, oos_html_parts *parts);
void oos_html_put_plain(oos_text *text, oos_view plain); /* as it may stand between tags */

/* The one printer of moments and their rows, for every command and format. */

void oos_report_amount_json(oos_json_writer *w, const char *owner, const oos_amount *amount);

/* [{"owner", "bytes", "source", "low", "high", "how" where there is one}, ...] */
void oos_report_holds_json(oos_json_writer *w, const oos_ledger *ledger);

/* One line of a phase: its word, what it needs, what is there, a bar. The line is left open for what follows. */
void oos_report_moment_bar(const oos_style *style, const oos_moment *moment, oos_ink ink);

/* The rows, a line each; with `explain` how each came to be. */
void oos_report_rows(const oos_style *style, const oos_ledger *ledger, bool explain);

/* The rows from `least_bytes` up as bars of a device, what is free on it last. */
void oos_report_bars(const oos_style *style, const oos_moment *moment, uint64_t least_bytes);

/* The rows of a Markdown table with two columns. */
void oos_report_rows_markdown(const oos_style *style, const oos_ledger *ledger);

/* A matrix on paper. Points are not kept: they are summed into a grid whose size is bounded, and two versions of the same
 * configuration are compared as they pass. Every form (text, JSON, Markdown, HTML, JUnit) is made from these sums. */

/* What a point can be, in the order of oomsight_verdict; then: no answer. */
enum { OOS_MATRIX_UNREADABLE = 5, OOS_MATRIX_KINDS = 6 };

typedef struct oos_matrix_cell {
    uint64_t counts[OOS_MATRIX_KINDS];
    uint64_t starts;          /* of all of them: those that start or likely start */
    uint64_t kv_low, kv_high; /* of those that start; OOMSIGHT_UNKNOWN: none */
    const char *phase, *why,
        *command; /* of the first that does not; command: what does, NULL when not known */
} oos_matrix_cell;

/* A row or a column of the grid; what is NULL is summed over. */
typedef struct oos_matrix_head {
    const char *model, *gpu, *flags;
} oos_matrix_head;

/* One configuration under two versions. */
typedef enum oos_matrix_change { OOS_MATRIX_BROKEN, OOS_MATRIX_MENDED, OOS_MATRIX_MOVED } oos_matrix_change;
typedef struct oos_matrix_side {
    unsigned kind; /* of OOS_MATRIX_KINDS */
    const char *phase, *why, *unknown_flag;
    uint64_t kv_tokens;
    bool starts; /* or likely does */
} oos_matrix_side;
typedef struct oos_matrix_pair {
    oos_matrix_change change;
    const char *model, *gpu, *flags;
    oos_matrix_side from, to;
    double ratio; /* of KV tokens, to / from - 1; 0 when one is not known */
} oos_matrix_pair;

enum { OOS_MATRIX_LISTED = 500 }; /* changes of each kind that are kept */

typedef struct oos_matrix_sum oos_matrix_sum;

/* Seen by the writers of src/report/matrix_*.c; others use the functions. */
struct oos_matrix_sum {
    oos_arena *arena;
    const oos_matrix_file *file;
    bool diff;
    double moved_ratio;
    oomsight_matrix_tally tally;
    oos_matrix_head *rows, *columns;
    size_t row_count, column_count, version_count;
    oos_matrix_cell *cells; /* [row][column][version] */
    bool over_flags;        /* flags are summed over */
    size_t models_left_out; /* in the last row */
    oos_matrix_pair *pairs[3];
    size_t pair_counts[3];
    struct oos_matrix_column *by_name; /* (GPU or model, set) -> place */
    struct oos_matrix_half *waiting;   /* first halves of pairs */
    unsigned layout;
};

oomsight_status oos_matrix_sum_create(oos_arena *arena, const oos_matrix_file *file, bool diff,
                                      double moved_ratio, oos_matrix_sum **ret_sum, oomsight_error *reterr);
void oos_matrix_sum_add(oos_matrix_sum *sum, const oos_matrix_place *place,
                        const oomsight_matrix_point *point);
void oos_matrix_sum_tally(const oos_matrix_sum *sum, oomsight_matrix_tally *ret_tally);

const oos_matrix_cell *oos_matrix_cell_at(const oos_matrix_sum *sum, size_t row, size_t column,
                                          size_t version);
uint64_t oos_matrix_cell_total(const oos_matrix_cell *cell);
const char *oos_matrix_kind_word(unsigned kind);
/* What people read: "tight" is "likely starts" or "likely fails". */
const char *oos_matrix_answer_word(unsigned kind, bool starts);
/* The worst that is in a cell: an index of counts. */
unsigned oos_matrix_cell_worst(const oos_matrix_cell *cell);

/* "vLLM 0.19.1 -> 0.32.0 breaks 3 of 120 configurations, ..." or "118 of 120 points start, ...". */
void oos_matrix_sentence(const oos_matrix_sum *sum, oos_text *text);

/* One point as JSON, schema oomsight.matrix/1. A dry start has its time and its key (NULL: none). */
void oos_report_matrix_line(oos_text *text, const oomsight_matrix_point *point, bool dryrun, const char *key);

void oos_report_matrix_text(oos_text *text, const oos_matrix_sum *sum, const oomsight_render_params *params);
void oos_report_matrix_markdown(oos_text *text, const oos_matrix_sum *sum,
                                const oomsight_render_params *params);
void oos_report_matrix_json(oos_text *text, const oos_matrix_sum *sum);
void oos_report_matrix_html(oos_text *text, const oos_matrix_sum *sum, const oomsight_render_params *params);
void oos_report_matrix_junit(oos_text *text, const oos_matrix_sum *sum);

/* What `oomsight doctor --measure` found: the figures, those in use, and a record for data/gpus. */

/* `gpu`: what is known of such a device, NULL: nothing. */
void oos_report_measure_text(oos_text *text, const oos_measure *measure, const oos_gpu *gpu,
                             const oomsight_render_params *params);

/* oomsight.measure/1 (docs/reference/formats/measure.md) */
void oos_report_measure_json(oos_text *text, const oos_measure *measure, const oos_gpu *gpu);

/* The analysis of a trace as text, JSON, Markdown and a single HTML page. */

void oos_replay_text(const oos_analysis *analysis, const oomsight_render_params *params, oos_text *text);
void oos_replay_markdown(const oos_analysis *analysis, const oomsight_render_params *params, oos_text *text);
void oos_replay_json(const oos_analysis *analysis, oos_text *text);
oomsight_status oos_replay_html(const oos_analysis *analysis, const oomsight_render_params *params,
                                oos_text *text, oomsight_error *reterr);

/* ---- pieces they share ----------------------------------------------------------------------------------------- */

typedef struct oos_size_text {
    char text[32];
} oos_size_text;
oos_size_text oos_size_of(uint64_t bytes);

/* "ok", "OOM at event 12", "refused" */
oos_size_text oos_outcome_word(const oos_outcome *outcome, bool refused);

/* The change of settings that survives and costs least, for a run that ended in OOM; NULL when there is none. */
const oos_what_if *oos_replay_advice(const oos_analysis *analysis);
/* One to five lines: what happened, and what to paste. */
void oos_replay_verdict(const oos_analysis *analysis, const oos_style *style);

/* A list of {name, bytes, blocks}. */
void oos_replay_holders(oos_json_writer *w, const char *key, const oos_block_holder *list, size_t count);

/* The release the run used. */
oos_size_text oos_torch_word(const oos_analysis *analysis);
uint64_t oos_device_total(const oos_analysis *analysis, const oos_scenario *scenario, bool *ret_known);

/* A trace with the simulator's own answers, in the JSON lines of docs/reference/formats/trace.md: what a recorded run of the real
 * allocator can be compared with, line by line. */

oomsight_status oos_replay_events_render(const oos_trace *trace, const oos_scenario *scenario, oos_text *text,
                                         oomsight_error *reterr);

/* A guarded run as text and JSON. */

enum { OOS_GROWTHS_MAX = 8 };
typedef struct oos_run_told {
    oos_run_state state;
    oos_growth growth[OOS_GROWTHS_MAX];
    size_t growth_count;
    oos_serving serving;
    /* for Prometheus */
    uint64_t host_bytes; /* resident, over all processes */
    const char *name;    /* the run's label */
    unsigned namesakes;  /* runs before it that are called the same */
    int pid;
} oos_run_told;

void oos_report_run_text(oos_text *text, const oos_run_told *run, const oomsight_render_params *params);
void oos_report_run_json(oos_text *text, const oos_run_told *run);
/* The fields "name" and "compute_capability" of a device. */
void oos_report_run_card(oos_json_writer *w, const oos_run_device *device);

/* What uses the GPUs, as a screen of `lines` lines: the last has the keys, and no line break. */
typedef struct oos_top_words {
    const char *host, *clock;
    double every; /* seconds */
    oos_top_order order;
    bool paused;
    unsigned lines;
} oos_top_words;
void oos_report_top(oos_text *text, const oos_top *top, const oos_top_words *words,
                    const oomsight_render_params *params);

/* The same of several runs for Prometheus. */
void oos_report_run_metrics(oos_text *text, const oos_run_told *runs, size_t count);

/* A report that fits a screen: parts in the order in which they are printed. When there are too many lines, those of the highest rank are
 * left out first, and the last line says how to see them. */

enum { OOS_SCREEN_LINES = 24, OOS_SCREEN_PARTS = 160 };

typedef struct oos_screen {
    oos_text parts[OOS_SCREEN_PARTS];
    unsigned ranks[OOS_SCREEN_PARTS];
    size_t count;
} oos_screen;

/* The style with which the next part is written. Rank 0 is never left out. */
oos_style oos_screen_part(oos_screen *screen, const oos_style *style, unsigned rank);

/* The parts into `style`, all of them or as many as fit; `hint` is the last line when some do not. */
void oos_screen_put(oos_screen *screen, const oos_style *style, bool whole, const char *hint);

/* What people read for the words of the JSON reports. Phases, components and sources keep their identifiers there. */

const char *oos_report_owner_title(oos_owner owner);
const char *oos_report_source_title(oos_source source);

const char *oos_report_where(oos_phase phase); /* "while loading weights"; "" where it is not known */
/* The same of a failure: a program that is no server serves nothing. */
const char *oos_report_incident_where(const oos_incident *incident, oos_phase phase);
const char *oos_report_point(oos_phase phase); /* "loading weights" */

/* `gives_up` of a fix as what follows "Trade-off: ". */
void oos_report_trade_off(oos_text *text, const char *gives_up);
void oos_report_trade_off_put(const oos_style *style, const char *gives_up); /* in the reader's language */

/* Words with their numbers of tokens, blocks and sequences as 31,744. */
void oos_report_grouped(oos_text *text, const char *words);

/* A sentence of a plan as a paragraph, its numbers as in the figures; the first of its answers, with the trade-off. */
void oos_report_sentence(const oos_style *style, unsigned indent, const char *before, const char *words);
void oos_report_first_answer(const oos_style *style, const oos_plan *plan);

/* What a text is, and which command answers it. */

typedef struct oos_what {
    const char *kind;     /* "command", "other", "config", "trace", "log", "empty", "nothing" */
    const char *sentence; /* the same for people */
    const char *ask;      /* the command that answers it; NULL: none does */
    const char *title;    /* of the engine that is named; NULL: none is */
    bool pasted; /* the answer takes it from standard input: what stands around it is taken off there */
} oos_what;

void oos_report_what(const oos_what *what, const char *path, const oos_style *style, bool json);
