/* Three things are kept: the history since the engine's last start (figures, features, how far it got), the open
 * incident, and nothing else. What opens, tells and ends an incident is the table in collect.def. */
#include "explain/explain.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/shown.h"
#include "command/command.h"
#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STRINGS_BYTES = 1 << 10,
    FILE_NAME_BYTES = 256,
    EVIDENCE_MAX_BYTES = 1024,
    SETUP_MAX_BYTES = 8 << 10,
    ARGS_MAX_BYTES = 32 << 10, /* of an engine that prints all of its arguments, defaults included */
    HISTORY_EVIDENCE = 10,
    CUT_LEAST_BYTES = 24, /* of a sentence that was cut off */
    CUT_LEAST_WORD_BYTES = 14,
    CUT_WITHIN_BYTES = 9 /* of one that was cut inside a word */
};

typedef enum stage {
#define STATE(name, open, told, words) name,
#include "explain/collect.def"
    STATE_COUNT
} stage;

typedef enum happening {
#define EVENT(name, words) name,
#include "explain/collect.def"
    EVENT_COUNT
} happening;

enum {
#define ACT(name, words) name##_BIT,
#include "explain/collect.def"
};
enum {
#define ACT(name, words) name = 1 << name##_BIT,
#include "explain/collect.def"
};

static const struct {
    bool open, told;
} states[STATE_COUNT] = {
#define STATE(name, open, told, words) {open, told},
#include "explain/collect.def"
};

static const struct {
    unsigned acts;
    stage next;
} steps[STATE_COUNT][EVENT_COUNT] = {
#define STEP(state, event, acts, next) [state][event] = {acts, next},
#include "explain/collect.def"
};

struct oos_collector {
    const oos_signals *signals;
    void (*on_incident)(void *, const oos_incident *);
    void *context;
    oos_incident history, open;
    oos_incident before; /* the history when the open incident began */
    stage state;
    bool at_top;      /* of a text: nothing of an engine's log came yet */
    bool from_top;    /* the open incident began there */
    bool aside;       /* `kept` is an error, or a title, above the log that it is about */
    bool same_again;  /* ... and the log told it, too */
    uint32_t part;    /* files that the text was rotated into */
    uint64_t touched; /* signs of failure, counted */
    uint64_t version, before_version;
    int64_t time;          /* of the line at hand, or of the last that bore one */
    unsigned served;       /* statistics since the last sign of failure */
    uint64_t from_message; /* numbers of `open` that a failure message gave */
    bool message_complete; /* the first message gave all its figures */
    /* What the history and the open incident quote. Both are small by their limits, and forgotten with them. */
    oos_arena *history_strings, *open_strings, *kept_strings;
    oos_incident kept;
    int64_t top_time, below_time; /* of an incident at the top, and of the log below it */
    char file[FILE_NAME_BYTES];
    uint64_t reported;
    uint64_t closed_line; /* of the message that closed the open incident's traceback */
    size_t user_signal;   /* index of "user.text" */
    uint64_t user_line;   /* the last line that logs a request */
    uint64_t user_until;  /* the last line that a user wrote */
    uint64_t muted_line;  /* tells why something was done without that the line above names */
    bool loud;            /* a frame, a death or a line of level ERROR is part of the open incident */
    oos_rank *ranks;      /* of `open`; made when the first rank speaks */
    oos_bench *bench;
};
_Static_assert((int)OOS_BENCH_JOINED_BYTES >= (int)OOS_JOINED_MAX_BYTES, "a message fits the bench");

/* One line, prepared. */
typedef struct item {
    const oos_hit_line *raw;
    oos_view text;  /* without colour, and without what is masked */
    oos_view shown; /* as it is quoted */
    oos_logline log;
    oos_view joined; /* empty until needed */
    oos_signal_set candidates;
    bool muted;
    bool read;     /* `says` is known */
    oos_says says; /* of memory */
    unsigned topics;
    bool framed;  /* its frame is taken */
    bool message; /* a signal said that memory ran out */
} item;

static const char *keep_string(oos_arena *strings, oos_view text, size_t most)
{
    char *copy = oos_arena_copy(strings, oos_view_slice(text, 0, most));
    if (!copy) return "";
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p < ' ' && *p != '\t') *p = ' ';
    return copy;
}

/* A line as it is quoted: a long one ends at a word's end, and shows that there was more. */
static const char *keep_quote(oos_arena *strings, oos_view text)
{
    size_t const more = sizeof OOS_SHOWN_MORE - 1;
    if (text.len <= EVIDENCE_MAX_BYTES) return keep_string(strings, text, EVIDENCE_MAX_BYTES);
    char quote[EVIDENCE_MAX_BYTES];
    oos_view const shown = oos_shown_beginning(text, sizeof quote - more);
    memcpy(quote, shown.ptr, shown.len);
    memcpy(quote + shown.len, OOS_SHOWN_MORE, more);
    return keep_string(strings, (oos_view){quote, shown.len + more}, sizeof quote);
}

static void incident_clear(oos_incident *incident, const char *file)
{
    *incident = (oos_incident){.last_marker = OOS_PHASE_COUNT,
                               .furthest = OOS_PHASE_COUNT,
                               .file = file ? file : "",
                               .count = 1,
                               .started = OOS_TIME_NONE,
                               .first_time = OOS_TIME_NONE,
                               .at = OOS_TIME_NONE};
}

oomsight_status oos_collector_create(const oos_signals *signals, oos_bench *bench,
                                     void (*on_incident)(void *context, const oos_incident *incident),
                                     void *context, oos_collector **ret_collector, oomsight_error *reterr)
{
    oos_collector *c = calloc(1, sizeof *c);
    if (c) {
        c->history_strings = oos_arena_create(STRINGS_BYTES);
        c->open_strings = oos_arena_create(STRINGS_BYTES);
        c->kept_strings = oos_arena_create(STRINGS_BYTES);
    }
    if (!c || !c->history_strings || !c->open_strings || !c->kept_strings) {
        oos_collector_free(c);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    }
    c->signals = signals;
    c->bench = bench;
    c->time = OOS_TIME_NONE;
    c->user_signal = oos_signals_find(signals, "user.text");
    c->on_incident = on_incident;
    c->context = context;
    incident_clear(&c->history, NULL);
    *ret_collector = c;
    return OOMSIGHT_OK;
}

static void add_evidence(oos_collector *c, oos_incident *to, const item *it, const oos_signal *signal,
                         bool decides)
{
    for (size_t i = 0; i < to->evidence_count; i++) {
        if (to->evidence[i].line != it->raw->number && strcmp(to->evidence[i].signal, signal->id) != 0)
            continue;
        to->evidence[i].decides |= decides && to->evidence[i].line == it->raw->number;
        return;
    }
    size_t const most = to == &c->history ? HISTORY_EVIDENCE : OOS_EVIDENCE_MAX;
    if (to->evidence_count >= most) {
        /* What states the failure takes the place of the last line that does not. */
        size_t last = to->evidence_count;
        while (decides && last > 0 && to->evidence[last - 1].decides) last--;
        if (!decides || last == 0) return;
        memmove(&to->evidence[last - 1], &to->evidence[last],
                (to->evidence_count - last) * sizeof *to->evidence);
        to->evidence_count--;
    }
    oos_arena *strings = to == &c->history ? c->history_strings : c->open_strings;
    oos_assert(to->evidence_count < most && most <= OOS_EVIDENCE_MAX);
    to->evidence[to->evidence_count++] =
        (oos_evidence){it->raw->number, keep_quote(strings, it->shown), signal->id, decides, signal->whole};
}

static void report(oos_collector *c, oos_incident *incident)
{
    incident->file = c->file;
    c->on_incident(c->context, incident);
    c->reported++;
}

static bool has_kind(const oos_collector *c, const oos_signal_set *set, oos_signal_kind kind)
{
    for (size_t i = 0; i < c->signals->count; i++)
        if (c->signals->list[i].kind == kind && oos_signal_has(set, i)) return true;
    return false;
}

/* One is under way, or its consequences are. */
static bool is_open(const oos_collector *c)
{
    return c->state != QUIET;
}

static bool tells_memory(const oos_collector *c)
{
    return has_kind(c, &c->open.signals, OOS_SIGNAL_OOM) || has_kind(c, &c->open.signals, OOS_SIGNAL_PART) ||
           has_kind(c, &c->open.signals, OOS_SIGNAL_REFUSAL) ||
           has_kind(c, &c->open.signals, OOS_SIGNAL_HOST);
}

static int64_t clock_of(const oos_hit_line *line)
{
    return line->time != OOS_TIME_NONE ? line->time : oos_logtime_read(line->text, oos_logtime_now());
}

/* The text begins with the failure, which shows no stage, and what follows it is not later by its clock: an error pasted above its
 * log, or a title. */
static bool stands_above(const oos_collector *c)
{
    bool const later =
        c->top_time != OOS_TIME_NONE && c->below_time != OOS_TIME_NONE && c->below_time > c->top_time;
    return c->from_top && !later && c->open.last_marker == OOS_PHASE_COUNT &&
           !oos_traceback_stages(&c->open.stack);
}

/* What the log below it tells: how far the engine got, what it was, its figures. */
static void read_on(const oos_collector *c, oos_incident *to)
{
    const oos_incident *below = &c->history;
    if (below->last_marker == OOS_PHASE_COUNT) return;
    to->read_on = true;
    to->last_marker = below->last_marker;
    to->last_marker_line = below->last_marker_line;
    to->furthest = below->furthest;
    to->old_shape |= below->old_shape;
    to->v1 |= below->v1;
    to->v1_early |= below->v1_early;
    oos_set_join(&to->signals, &below->signals);
    for (size_t i = 0; i < OOS_NUMBER_COUNT; i++)
        if (!to->numbers[i].known) to->numbers[i] = below->numbers[i];
}

static oos_setup_text setup_copy(oos_arena *strings, const oos_setup_text *setup)
{
    oos_setup_text copy = *setup;
    const char **fields[] = {&copy.version, &copy.torch,  &copy.model,  &copy.gpu,
                             &copy.args,    &copy.config, &copy.command};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (*fields[i]) *fields[i] = keep_string(strings, oos_view_of(*fields[i]), ARGS_MAX_BYTES);
    return copy;
}

/* The log that the open incident stands above begins: whether it says the same is told by its end. */
static bool lay_aside(oos_collector *c)
{
    if (c->aside || !tells_memory(c) || !stands_above(c)) return false;
    c->kept = c->open;
    c->kept.ranks = NULL;
    c->kept.rank_count = 0;
    c->kept.setup = setup_copy(c->kept_strings, &c->open.setup);
    for (size_t i = 0; i < c->kept.evidence_count; i++)
        c->kept.evidence[i].text = keep_quote(c->kept_strings, oos_view_of(c->open.evidence[i].text));
    c->aside = true;
    c->same_again = false;
    return true;
}

/* Said once where the log says it, too. */
static void give_back(oos_collector *c)
{
    if (c->aside && !c->same_again) {
        read_on(c, &c->kept);
        report(c, &c->kept);
    }
    c->aside = false;
    oos_arena_reset(c->kept_strings);
}

/* False: it is not worth it. */
static bool tell(oos_collector *c)
{
    bool const memory = tells_memory(c), went_on = c->state == SURVIVED;
    if (memory && stands_above(c)) read_on(c, &c->open);
    const oos_number *above = &c->kept.numbers[OOS_NUMBER_tried], *own = &c->open.numbers[OOS_NUMBER_tried];
    if (memory && c->aside && (!above->known || (own->known && own->value == above->value)))
        c->same_again = true;
    bool const said = memory || has_kind(c, &c->open.signals, OOS_SIGNAL_FAULT) ||
                      has_kind(c, &c->open.signals, OOS_SIGNAL_FRAME);
    /* Words without any of these, and the engine serves on: somebody talks of a failure. */
    if (!c->loud && went_on) return false;
    bool const worked =
        c->open.last_marker >= OOS_PHASE_RUNTIME_PREFILL && c->open.last_marker != OOS_PHASE_COUNT;
    /* A traceback after which the engine went on was caught by somebody; "died unexpectedly" alone, after serving, is
     * how some versions report their own shutdown. */
    if (!memory && (went_on || (!said && worked))) return false;
    report(c, &c->open);
    return true;
}

static void open_incident(oos_collector *c, const oos_hit_line *line)
{
    oos_arena_reset(c->open_strings);
    c->before = c->history;
    c->before_version = c->version;
    c->open = c->history;
    c->open.ranks = c->ranks;
    c->open.first_line = line->number;
    c->open.first_part = c->part;
    c->open.first_byte = line->first_byte;
    c->open.first_time = c->time;
    c->open.failed = true;
    c->message_complete = c->loud = false;
    c->from_top = c->at_top;
    c->top_time = c->at_top ? clock_of(line) : OOS_TIME_NONE;
    c->below_time = OOS_TIME_NONE;
    c->from_message = 0;
}

static void add_line(oos_collector *c, const oos_hit_line *line)
{
    c->touched++;
    c->open.last_line = line->number;
    c->open.last_part = c->part;
    c->open.last_byte = line->end_byte ? line->end_byte - 1 : 0;
    c->open.at = c->time;
    c->served = 0;
}

/* `line` of a sign or a message, else NULL. */
static void happens(oos_collector *c, happening event, const oos_hit_line *line)
{
    unsigned const acts = steps[c->state][event].acts;
    bool told = true;
    if (acts & READ_ON && !c->from_message && stands_above(c)) read_on(c, &c->open);
    if (!(acts & LAY_ASIDE && lay_aside(c)) && acts & TELL) told = tell(c);
    if (acts & GIVE_BACK) give_back(c);
    if (acts & OPEN) open_incident(c, line);
    if (acts & ADD) add_line(c, line);
    c->state = told || acts & OPEN ? steps[c->state][event].next : QUIET;
}

/* The engine prints statistics while it lives; a dying one may still print one or two. */
static void note_serving(oos_collector *c)
{
    enum { ALIVE_AT = 3 };
    if (++c->served >= ALIVE_AT) happens(c, ALIVE, NULL);
}

void oos_collector_free(oos_collector *c)
{
    if (!c) return;
    oos_arena_free(c->history_strings);
    oos_arena_free(c->open_strings);
    oos_arena_free(c->kept_strings);
    free(c->ranks);
    free(c);
}

void oos_collector_settle(oos_collector *c)
{
    happens(c, PAUSE, NULL);
}

void oos_collector_part(oos_collector *c)
{
    c->part++;
    c->user_line = c->user_until = 0;
}

oos_collector_point oos_collector_at(const oos_collector *c)
{
    bool const open = states[c->state].open;
    return (oos_collector_point){.history = open ? &c->before : &c->history,
                                 .open = open,
                                 .told = states[c->state].told,
                                 .first_part = c->open.first_part,
                                 .first_byte = c->open.first_byte,
                                 .first_line = c->open.first_line,
                                 .time = open ? c->open.first_time : c->time,
                                 .version = open ? c->before_version : c->version};
}

uint64_t oos_collector_touched(const oos_collector *c)
{
    return c->touched;
}

const oos_incident *oos_collector_history(const oos_collector *c)
{
    return &c->history;
}

void oos_collector_file(oos_collector *c, const char *name)
{
    snprintf(c->file, sizeof c->file, "%s", name ? name : "");
    c->state = QUIET;
    c->aside = false;
    c->at_top = true;
    c->time = OOS_TIME_NONE;
    c->user_line = c->user_until = 0;
    oos_arena_reset(c->history_strings);
    oos_arena_reset(c->open_strings);
    incident_clear(&c->history, c->file);
    c->reported = 0;
}

void oos_collector_end(oos_collector *c, uint64_t lines, bool binary)
{
    happens(c, END, NULL);
    if (c->reported == 0) {
        c->history.first_line = lines ? 1 : 0;
        c->history.last_line = lines;
        c->history.binary = binary;
        report(c, &c->history);
    }
}

/* ---- figures ---- */

static void take_text(oos_collector *c, const oos_capture *capture)
{
    const struct {
        const char *name;
        const char **to;
    } fields[] = {{"text_version", &c->history.setup.version}, {"text_torch", &c->history.setup.torch},
                  {"text_model", &c->history.setup.model},     {"text_gpu", &c->history.setup.gpu},
                  {"text_args", &c->history.setup.args},       {"text_config", &c->history.setup.config},
                  {"text_command", &c->history.setup.command}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(capture->name, fields[i].name) == 0 && !*fields[i].to)
            *fields[i].to = keep_string(c->history_strings, capture->text, ARGS_MAX_BYTES);
    if (is_open(c)) c->open.setup = c->history.setup;
}

/* "setup.serve", or that of one engine: "setup.serve.NAME". */
static bool is_start(const oos_signal *signal)
{
    return strncmp(signal->id, "setup.serve", 11) == 0;
}

/* A command may go on over lines, and may be YAML or Python. */
static void take_command(oos_collector *c, const item *it)
{
    char command[SETUP_MAX_BYTES];
    if (c->history.setup.command) return;
    size_t const len = oos_paste_command(it->log.message, it->raw->after, command, sizeof command);
    if (len)
        c->history.setup.command = keep_string(c->history_strings, (oos_view){command, len}, SETUP_MAX_BYTES);
    if (is_open(c)) c->open.setup = c->history.setup;
}

/* Figures of a failure message replace what the history had; the first message wins, a later one fills its gaps. */
static void take_number(oos_collector *c, oos_incident *to, bool message, oos_number_id id,
                        const oos_number *number)
{
    if (!message) {
        if (!to->numbers[id].known) to->numbers[id] = *number;
        return;
    }
    uint64_t const bit = (uint64_t)1 << id;
    if (c->message_complete || c->from_message & bit) return;
    to->numbers[id] = *number;
    c->from_message |= bit;
}
_Static_assert(OOS_NUMBER_COUNT <= 64, "from_message has a bit per number");

/* The entry of the rank that printed a line; NULL: it is none, or there are too many. */
static oos_rank *rank_of(oos_collector *c, const item *it)
{
    oos_view const name = oos_logline_rank(it->log.process);
    if (!name.len) return NULL;
    for (size_t i = 0; i < c->open.rank_count; i++)
        if (oos_view_is(name, c->open.ranks[i].rank)) return &c->open.ranks[i];
    if (c->open.rank_count == OOS_RANKS_MAX) return NULL;
    if (!c->ranks && !(c->ranks = calloc(OOS_RANKS_MAX, sizeof *c->ranks))) return NULL;
    c->open.ranks = c->ranks;
    oos_rank *rank = &c->open.ranks[c->open.rank_count++];
    *rank = (oos_rank){.rank = keep_string(c->open_strings, name, 40)};
    return rank;
}

/* "Process 174 has 124.75 GiB" and "this process has 11.35 GiB", any number of them. Which one is ours is told only when
 * the container shares the host's process numbers; else the largest is. */
static void take_processes(oos_collector *c, const item *it, const oos_signal *signal, oos_view text)
{
    oos_number own = {0}, largest = {0};
    uint64_t sum = 0;
    size_t listed = 0;
    oos_match match;
    for (size_t at = 0; listed < 64 && oos_pattern_find(signal->pattern, text, at, &match); at = match.end) {
        for (size_t i = 0; i < match.count; i++) {
            oos_number number = {.line = it->raw->number};
            if (!oos_number_size(match.captures[i].text, &number)) continue;
            snprintf(number.text, sizeof number.text, "%.*s",
                     (int)oos_min(match.captures[i].text.len, sizeof number.text - 1),
                     match.captures[i].text.ptr);
            if (strcmp(match.captures[i].name, "own_size") == 0) {
                own = number;
                continue;
            }
            listed++;
            sum = oos_add(sum, number.value);
            if (!largest.known || number.value > largest.value) largest = number;
        }
    }
    if (!own.known && !largest.known) return;
    oos_number others = {
        .known = true, .line = it->raw->number, .value = own.known ? sum : sum - largest.value};
    take_number(c, &c->open, true, OOS_NUMBER_process, own.known ? &own : &largest);
    if (others.value) take_number(c, &c->open, true, OOS_NUMBER_others, &others);
    oos_rank *rank = rank_of(c, it);
    if (!rank || rank->numbers[OOS_NUMBER_process].known) return;
    rank->numbers[OOS_NUMBER_process] = own.known ? own : largest;
    if (others.value) rank->numbers[OOS_NUMBER_others] = others;
}

static void take_captures(oos_collector *c, const item *it, const oos_match *match, bool message)
{
    for (size_t i = 0; i < match->count; i++) {
        const oos_capture *capture = &match->captures[i];
        oos_number_id id;
        oos_number number;
        if (strncmp(capture->name, "text_", 5) == 0)
            take_text(c, capture);
        else if (oos_number_read(capture, it->raw->number, &id, &number))
            take_number(c, message ? &c->open : &c->history, message, id, &number);
    }
}

/* What an allocator says before it tries again. The message that may follow has the request itself, and wins. */
static void take_warned(oos_collector *c, const item *it, const oos_match *match)
{
    for (size_t i = 0; i < match->count; i++) {
        oos_number_id id;
        oos_number number;
        if (oos_number_read(&match->captures[i], it->raw->number, &id, &number))
            take_number(c, &c->open, false, id, &number);
    }
}

static void take_rank(oos_collector *c, const item *it, const oos_match *match)
{
    oos_rank *rank = rank_of(c, it);
    for (size_t i = 0; rank && i < match->count; i++) {
        oos_number_id id;
        oos_number number;
        if (oos_number_read(&match->captures[i], it->raw->number, &id, &number) && !rank->numbers[id].known)
            rank->numbers[id] = number;
    }
}

/* ---- lines ---- */

static bool same_letters(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (oos_lower(a[i]) != oos_lower(b[i])) return false;
    return true;
}

/* Case does not matter, as it does not to the scan. */
static bool holds_word(oos_view text, const char *word)
{
    size_t const len = strlen(word);
    char const small = oos_lower(*word), large = (char)(small >= 'a' && small <= 'z' ? small - 'a' + 'A' : 0);
    if (text.len < len) return false;
    const char *const last = text.ptr + (text.len - len);
    for (const char *at = text.ptr; at <= last && (at = memchr(at, small, (size_t)(last - at) + 1)); at++)
        if (same_letters(at, word, len)) return true;
    for (const char *at = text.ptr; large && at <= last && (at = memchr(at, large, (size_t)(last - at) + 1));
         at++)
        if (same_letters(at, word, len)) return true;
    return false;
}

static bool literal_in(const oos_collector *c, const item *it, size_t index, oos_view text)
{
    const oos_signals *s = c->signals;
    for (size_t i = 0; i < it->raw->literal_count; i++) {
        uint32_t const literal = it->raw->literals[i];
        for (uint32_t o = s->first[literal]; o < s->first[literal + 1]; o++)
            if (s->owners[o] == index && text.len && holds_word(text, s->words[literal])) return true;
    }
    return false;
}

static oos_view joined(oos_collector *c, item *it)
{
    if (!it->joined.len)
        it->joined = (oos_view){c->bench->joined, oos_window_join(it->text, it->raw->after, c->bench->joined,
                                                                  OOS_JOINED_MAX_BYTES)};
    return it->joined;
}

/* "Error while creating ..." in large letters looks like a level. Where neither a time nor a file stands behind it, the word may be
 * the sentence's own, and the sentence fails without it. */
static oos_view sentence_of(const item *it)
{
    oos_view const text = it->text, message = it->log.message;
    char const level = it->log.level;
    if ((level != 'E' && level != 'C') || message.ptr < text.ptr || message.ptr > text.ptr + text.len)
        return message;
    for (const char *at = text.ptr; at < message.ptr; at++)
        if (!oos_is_alpha(*at) && *at != ' ' && *at != ':') return message;
    return text;
}

/* What the sentence says of memory. */
static oos_says says(const oos_collector *c, item *it)
{
    if (!it->read) it->says = oos_grammar_read(c->signals->grammar, sentence_of(it), &it->topics);
    it->read = true;
    return it->says;
}

/* Tracebacks are printed at ERROR level or without one, as `File` lines and indented code; the same names in an INFO
 * line or in a warning are chatter. */
static bool is_traceback(const oos_collector *c, const item *it)
{
    char const level = it->log.level;
    if (oos_view_starts(it->log.message, "Dumping ")) return false; /* the configuration, at ERROR level */
    if (level == 'E' || level == 'C') return true;
    if (level || memmem(it->text.ptr, it->text.len, "Warning:", 8)) return false;
    oos_view const message = it->log.message;
    return is_open(c) || oos_view_starts(message, "Traceback") ||
           memmem(message.ptr, message.len, "File ", 5) ||
           memmem(message.ptr, message.len, "\xe2\x94\x82 ", 4) || oos_view_starts(message, "    ");
}

/* What `async_llm.py:699]` or a module of the server logs comes from a request: nothing of a start passes there. Frames name their
 * files without a number behind them. */
static void note_logger(oos_collector *c, const item *it)
{
    static const char *const loggers[] = {"async_llm_engine.py:", "async_llm.py:", "serving_chat.py:",
                                          "serving_completion.py:", "serving_engine.py:"};
    for (size_t i = 0; i < sizeof loggers / sizeof *loggers && c->signals->serving_signal != SIZE_MAX; i++)
        if (memmem(it->text.ptr, it->text.len, loggers[i], strlen(loggers[i])))
            oos_signal_add(&c->open.signals, c->signals->serving_signal);
    oos_traceback_logger(c->signals->frames, &c->open.stack, it->text);
}

/* An item of a list, a row of a table. */
static bool is_listed(oos_view text)
{
    while (text.len && text.ptr[0] == ' ') text = oos_view_slice(text, 1, SIZE_MAX);
    return oos_view_starts(text, "- ") || oos_view_starts(text, "* ") || oos_view_starts(text, "|");
}

/* Words of a message in a document, and nothing that shows that it was printed. */
static bool is_mention(const oos_collector *c, const item *it, const oos_match *match)
{
    return it->raw->document && !it->log.labelled && !(is_open(c) && c->open.stack.count) &&
           (it->raw->page || match->count < 2 || match->start >= it->text.len || is_listed(it->text));
}

static void on_message(oos_collector *c, item *it, size_t index, const oos_match *match)
{
    const oos_signal *signal = &c->signals->list[index];
    if (it->muted || is_mention(c, it, match)) return;
    it->message = true;
    happens(c, MESSAGE, it->raw);
    c->loud |= it->log.level == 'E' || it->log.level == 'C' || signal->kind == OOS_SIGNAL_REFUSAL ||
               signal->kind == OOS_SIGNAL_HOST;
    /* A message that was found by joining lines may stand below: it comes again. */
    bool const here = match->start < it->text.len;
    if (c->open.stack.count && !c->open.stack.closed && here) {
        c->open.stack.closed = true;
        c->closed_line = it->raw->number;
    }
    oos_signal_add(&c->open.signals, index);
    note_logger(c, it);
    add_evidence(c, &c->open, it, signal, true);
    if (signal->repeat)
        take_processes(c, it, signal, joined(c, it));
    else if (signal->quiet)
        take_warned(c, it, match);
    else
        take_captures(c, it, match, true);
    take_rank(c, it, match);
}

static oos_view trimmed(oos_view text)
{
    while (text.len && text.ptr[text.len - 1] == ' ') text.len--;
    return text;
}

/* A line that ends in the middle of a word: nobody prints that, somebody cut it. */
static bool ends_within(oos_view text, const char *word, size_t len)
{
    return len > CUT_LEAST_WORD_BYTES || (len >= CUT_WITHIN_BYTES && oos_is_alpha(word[len - 1]) &&
                                          oos_is_alpha(word[len]) && text.ptr[text.len - 1] != ' ');
}

/* A line that ends in the middle of what a message consists of; SIZE_MAX: no such signal. */
static size_t cut_message(const oos_collector *c, oos_view text)
{
    const oos_signals *s = c->signals;
    oos_view const whole = text;
    text = trimmed(text);
    for (size_t i = 0; i < s->literal_count; i++) {
        const oos_signal *signal = &s->list[s->owners[s->first[i]]];
        if (!oos_signal_is_message(signal->kind) || (signal->pattern && !signal->cuttable)) continue;
        for (size_t len = strlen(s->words[i]); len >= CUT_WITHIN_BYTES; len--)
            if (text.len >= len && (len > CUT_LEAST_WORD_BYTES || text.len == whole.len) &&
                ends_within(text, s->words[i], len) &&
                same_letters(text.ptr + text.len - len, s->words[i], len))
                return s->owners[s->first[i]];
    }
    for (size_t i = 0; i < s->count; i++)
        if (oos_signal_is_message(s->list[i].kind) && s->list[i].pattern && s->list[i].cuttable &&
            oos_pattern_begins(s->list[i].pattern, text, CUT_LEAST_BYTES))
            return i;
    return SIZE_MAX;
}

/* The line holds a known failure that has another reason, whatever it says of memory. */
static bool names_fault(const oos_collector *c, const item *it)
{
    oos_match match;
    for (size_t i = 0; i < c->signals->count; i++) {
        const oos_signal *signal = &c->signals->list[i];
        if (signal->kind != OOS_SIGNAL_FAULT || signal->vague || !oos_signal_has(&it->candidates, i))
            continue;
        if (signal->pattern ? oos_pattern_find(signal->pattern, it->text, 0, &match)
                            : literal_in(c, it, i, it->log.message))
            return true;
    }
    return false;
}

/* An illegal access, an assertion or a time-out was told before: what comes after it is its consequence. */
static bool after_hard_fault(const oos_collector *c)
{
    for (size_t i = 0; is_open(c) && i < c->signals->count; i++)
        if (c->signals->list[i].hard && oos_signal_has(&c->open.signals, i)) return true;
    return false;
}

/* `File "...", line 12, in oom_guard`: the name of a function is no sentence. */
static bool is_bare_frame(oos_view text)
{
    while (text.len && text.ptr[0] == ' ') text = oos_view_slice(text, 1, SIZE_MAX);
    const char *name = memmem(text.ptr, text.len, ", in ", 5);
    if (!oos_view_starts(text, "File \"") || !name) return false;
    return !memchr(name + 5, ' ', (size_t)(text.ptr + text.len - name - 5));
}

/* A sentence that nobody listed: its grammar decides. Progress and advice are not failures. Whoever knew the sentence, what it
 * is about ("failed to load the model: out of memory") is kept. */
static void on_words(oos_collector *c, item *it)
{
    char const level = it->log.level;
    if (it->muted || level == 'I' || level == 'D' || is_bare_frame(it->log.message)) return;
    oos_match const none = {0};
    if (!it->message && (names_fault(c, it) || after_hard_fault(c))) return;
    if (says(c, it) != OOS_SAYS_LACK || c->signals->lack_signal == SIZE_MAX) return;
    if (!it->message) on_message(c, it, c->signals->lack_signal, &none);
    for (size_t i = 0; i < OOS_TOPIC_COUNT; i++)
        if (it->topics >> i & 1 && c->signals->topic_signals[i] != SIZE_MAX)
            oos_signal_add(&c->open.signals, c->signals->topic_signals[i]);
}

/* Ranks print out of turn, and lines are repeated: what was reached stays reached. */
static void note_furthest(oos_incident *incident, oos_phase phase)
{
    if (phase > OOS_PHASE_RUNTIME_OTHER) return;
    if (incident->furthest == OOS_PHASE_COUNT || phase > incident->furthest) incident->furthest = phase;
}

/* A line of an engine's log. */
static void below_top(oos_collector *c, const oos_hit_line *line)
{
    c->at_top = false;
    if (is_open(c) && c->from_top) c->below_time = clock_of(line);
}

static void on_progress(oos_collector *c, item *it, size_t index, const oos_match *match)
{
    const oos_signal *signal = &c->signals->list[index];
    below_top(c, it->raw);
    oos_signal_add(&c->history.signals, index);
    take_captures(c, it, match, false);
    if (!signal->quiet && signal->phase != OOS_PHASE_COUNT) {
        c->history.last_marker = signal->phase;
        c->history.last_marker_line = it->raw->number;
        note_furthest(&c->history, signal->phase);
        if (is_open(c) && signal->phase >= OOS_PHASE_RUNTIME_PREFILL &&
            signal->phase <= OOS_PHASE_RUNTIME_OTHER)
            oos_signal_add(&c->open.signals, index);
    }
    if (signal->kind == OOS_SIGNAL_READY) {
        happens(c, ALIVE, NULL);
        note_furthest(&c->history, OOS_PHASE_RUNTIME_PREFILL);
    }
    if (signal->cheap) note_serving(c);
    if (signal->pattern) add_evidence(c, &c->history, it, signal, false);
}

void oos_collector_resume(oos_collector *c, const oos_incident *history, bool told, int64_t time)
{
    c->time = time;
    oos_arena_reset(c->history_strings);
    c->history = *history;
    c->history.file = c->file;
    c->history.setup = setup_copy(c->history_strings, &history->setup);
    for (size_t i = 0; i < history->evidence_count; i++)
        c->history.evidence[i].text = keep_quote(c->history_strings, oos_view_of(history->evidence[i].text));
    c->at_top = false;
    if (told) {
        c->before = c->open = c->history;
        c->state = TOLD;
    }
}

static void on_start(oos_collector *c, const oos_hit_line *line)
{
    /* The server and each of its engines announce themselves; only the first word after work or failure is a start. */
    bool const worked = is_open(c) || c->history.last_marker != OOS_PHASE_COUNT;
    below_top(c, line);
    if (!worked) return;
    happens(c, START, NULL);
    /* The set-up was printed just before, or is valid for the whole paste; the rest is forgotten. Its strings pass through
     * the other pool, which is free now. */
    oos_arena_reset(c->open_strings);
    oos_setup_text setup = setup_copy(c->open_strings, &c->history.setup);
    oos_arena_reset(c->history_strings);
    incident_clear(&c->history, c->file);
    c->history.setup = setup_copy(c->history_strings, &setup);
}

static void on_signal(oos_collector *c, item *it, size_t index)
{
    const oos_signal *signal = &c->signals->list[index];
    oos_match match = {0};
    bool const traceback = signal->kind == OOS_SIGNAL_FRAME || signal->kind == OOS_SIGNAL_FAULT;
    if (signal->kind == OOS_SIGNAL_FRAME && !is_traceback(c, it)) return;
    if (signal->pattern) {
        bool const message = oos_signal_is_message(signal->kind);
        oos_view const subject = message                            ? joined(c, it)
                                 : signal->kind == OOS_SIGNAL_FRAME ? it->log.message
                                                                    : it->text;
        /* A line that ends in the middle of a known sentence says it all the same. */
        if (!oos_pattern_find(signal->pattern, subject, 0, &match) &&
            (!message || !signal->cuttable ||
             !oos_pattern_begins(signal->pattern, trimmed(it->log.message), CUT_LEAST_BYTES)))
            return;
    } else if (traceback && !literal_in(c, it, index, it->log.message)) {
        return;
    }
    switch (signal->kind) {
    case OOS_SIGNAL_OOM:
    case OOS_SIGNAL_PART:
    case OOS_SIGNAL_REFUSAL:
    case OOS_SIGNAL_HOST: on_message(c, it, index, &match); break;
    case OOS_SIGNAL_WORDING: on_words(c, it); break;
    case OOS_SIGNAL_PLACE:
        if (it->message && literal_in(c, it, index, it->log.message)) oos_signal_add(&c->open.signals, index);
        break;
    case OOS_SIGNAL_FAULT:
        /* A line that speaks of memory is no proof of another reason. */
        if (signal->vague && !it->message && !it->muted) {
            size_t const cut = cut_message(c, it->log.message);
            if (cut != SIZE_MAX) on_message(c, it, cut, &match);
        }
        if (it->message || (signal->vague && !it->muted && says(c, it) > OOS_SAYS_ADVICE)) return;
        /* fall through */
    case OOS_SIGNAL_WRAPPER:
    case OOS_SIGNAL_FRAME:
        happens(c, SIGN, it->raw);
        c->loud = true;
        if (signal->kind != OOS_SIGNAL_FAULT && !it->framed) {
            note_logger(c, it);
            oos_traceback_take(c->signals->frames, &c->open.stack, it->log.message, it->raw->after);
            it->framed = true;
        }
        /* What was running is told by the frames above the message, or beside it where all is one line; those below it are
         * of another traceback. */
        if (signal->kind == OOS_SIGNAL_FRAME && c->open.stack.closed && it->raw->number > c->closed_line)
            break;
        oos_signal_add(&c->open.signals, index);
        add_evidence(c, &c->open, it, signal, signal->kind == OOS_SIGNAL_FAULT);
        break;
    case OOS_SIGNAL_MARKER:
    case OOS_SIGNAL_READY: on_progress(c, it, index, &match); break;
    case OOS_SIGNAL_START: on_start(c, it->raw); break;
    case OOS_SIGNAL_ENGINE:
    case OOS_SIGNAL_HINT:
    case OOS_SIGNAL_SETUP:
        if (is_start(signal)) take_command(c, it);
        oos_signal_add(&c->history.signals, index);
        if (is_open(c)) oos_signal_add(&c->open.signals, index);
        take_captures(c, it, &match, false);
        break;
    case OOS_SIGNAL_MUTE:
        it->muted = true;
        if (signal->vague) c->muted_line = it->raw->number + 1;
        break;
    case OOS_SIGNAL_DENY: break; /* masked */
    }
}

/* The order in which the kinds of one line are looked at: what was going on before what went wrong. */
static const oos_signal_kind order[] = {
    OOS_SIGNAL_MUTE,    OOS_SIGNAL_START, OOS_SIGNAL_SETUP,  OOS_SIGNAL_ENGINE,
    OOS_SIGNAL_HINT,    OOS_SIGNAL_READY, OOS_SIGNAL_MARKER, OOS_SIGNAL_OOM,
    OOS_SIGNAL_REFUSAL, OOS_SIGNAL_PART,  OOS_SIGNAL_HOST,   OOS_SIGNAL_WORDING,
    OOS_SIGNAL_PLACE,   OOS_SIGNAL_FAULT, OOS_SIGNAL_FRAME,  OOS_SIGNAL_WRAPPER};

/* Progress, by the first bytes: statistics speak of the KV cache all day, and words alone do not make them a failure. */
static bool is_chatter(oos_view text)
{
    enum { PREFIX_BYTES = 96 };
    oos_view const head = oos_view_slice(text, 0, PREFIX_BYTES);
    return memmem(head.ptr, head.len, "INFO ", 5) || memmem(head.ptr, head.len, "DEBUG ", 6);
}

/* Signals of this line that are not settled by their mere presence. Frequent lines end here. */
static bool gather(oos_collector *c, const oos_hit_line *raw, oos_signal_set *ret_candidates)
{
    const oos_signals *s = c->signals;
    bool any = false;
    *ret_candidates = (oos_signal_set){0};
    for (size_t i = 0; i < raw->literal_count; i++)
        for (uint32_t o = s->first[raw->literals[i]]; o < s->first[raw->literals[i] + 1]; o++) {
            size_t const index = s->owners[o];
            const oos_signal *signal = &s->list[index];
            if (signal->cheap && oos_signal_has(&c->history.signals, index)) {
                c->history.last_marker = signal->phase;
                c->history.last_marker_line = raw->number;
                note_furthest(&c->history, signal->phase);
                note_serving(c);
                continue;
            }
            bool const sticky =
                !signal->pattern && (signal->kind == OOS_SIGNAL_ENGINE || signal->kind == OOS_SIGNAL_HINT);
            if (sticky && oos_signal_has(&c->history.signals, index) && !is_open(c)) continue;
            oos_signal_add(ret_candidates, index);
            any |= signal->kind != OOS_SIGNAL_DENY &&
                   (signal->kind != OOS_SIGNAL_WORDING || !is_chatter(raw->text));
        }
    return any;
}

static void note_shape(oos_incident *incident, const oos_logline *log)
{
    bool const worker = oos_view_starts(log->process, "VllmWorker rank");
    incident->old_shape |= log->old_shape;
    /* Later ones have a process in front; core.py is the V1 engine's. */
    incident->v1_early |= worker || (log->level == 'E' && !log->process.len && !log->old_shape &&
                                     oos_view_starts(log->source, "core.py:"));
    incident->v1 |= oos_view_starts(log->process, "EngineCore") || oos_view_starts(log->process, "Worker_") ||
                    worker || oos_view_starts(log->process, "APIServer");
}

/* A message broken over lines holds parts whose literals are not on its first one. */
static bool is_allocator_message(const oos_collector *c, const oos_signal_set *candidates)
{
    for (size_t w = 0; w < OOS_SIGNAL_WORDS; w++)
        for (uint64_t bits = candidates->words[w]; bits; bits &= bits - 1) {
            oos_signal_kind const kind = c->signals->list[w * 64 + (size_t)__builtin_ctzll(bits)].kind;
            if (kind == OOS_SIGNAL_OOM || kind == OOS_SIGNAL_PART) return true;
        }
    return false;
}

static void add_parts(const oos_collector *c, oos_signal_set *candidates)
{
    for (size_t i = 0; i < c->signals->count; i++)
        if (c->signals->list[i].piece) oos_signal_add(candidates, i);
}

/* A name in a backtrace says what ran, not what happened. */
static void drop_sentences(const oos_collector *c, oos_signal_set *candidates)
{
    for (size_t i = 0; i < c->signals->count; i++) {
        oos_signal_kind const kind = c->signals->list[i].kind;
        if (oos_signal_is_message(kind) || kind == OOS_SIGNAL_WORDING || kind == OOS_SIGNAL_FAULT)
            oos_signal_remove(candidates, i);
    }
}

static bool is_shown_traceback(oos_view message)
{
    return memmem(message.ptr, message.len, "File \"", 6) || oos_view_starts(message, "Traceback (");
}

/* A document quotes: a line of it is evidence where it has the shape of a log or stands in a traceback. A message with two figures
 * was not made up for an example's sake; on_message() looks at that. */
static void drop_quotes(const oos_collector *c, const item *it, oos_signal_set *candidates)
{
    if (it->log.labelled || (is_open(c) && c->open.stack.count)) return;
    bool const traceback = is_shown_traceback(it->log.message);
    for (size_t i = 0; i < c->signals->count; i++) {
        oos_signal_kind const kind = c->signals->list[i].kind;
        if (!oos_signal_is_message(kind) && !(traceback && kind == OOS_SIGNAL_FRAME))
            oos_signal_remove(candidates, i);
    }
}

/* What this program printed, in a log that it follows: quoted failures are no failures. */
static bool is_our_own(oos_view text)
{
    return oos_view_starts(text, "{\"schema\": \"oomsight.") || oos_view_holds(text, "\"decides\": ") ||
           oos_view_holds(text, "Expected error: ");
}

static bool is_empty(const oos_signal_set *set)
{
    uint64_t any = 0;
    for (size_t w = 0; w < OOS_SIGNAL_WORDS; w++) any |= set->words[w];
    return any == 0;
}

/* Without the marks of a reply that quotes it. */
static oos_view unquoted(oos_view text)
{
    while (oos_view_starts(text, "> ")) text = oos_view_slice(text, 2, SIZE_MAX);
    return text;
}

static bool has_literal_of(const oos_collector *c, const oos_hit_line *raw, size_t index)
{
    const oos_signals *s = c->signals;
    for (size_t i = 0; i < raw->literal_count; i++)
        for (uint32_t o = s->first[raw->literals[i]]; o < s->first[raw->literals[i] + 1]; o++)
            if (s->owners[o] == index) return true;
    return false;
}

/* The rest of a prompt, on lines of its own or beyond what is looked at of a long one. */
static bool is_users(const oos_collector *c, const oos_hit_line *raw)
{
    return raw->number <= c->user_until || (raw->torn && raw->number == c->user_line);
}

static size_t behind_lines(oos_view text, size_t lines)
{
    size_t at = 0;
    for (; lines && at < text.len; lines--) {
        const char *end = memchr(text.ptr + at + 1, '\n', text.len - at - 1);
        at = end ? (size_t)(end - text.ptr) : text.len;
    }
    return at;
}

/* What is no longer in the line is no signal of it. */
static void drop_masked(const oos_collector *c, item *it)
{
    const oos_signals *s = c->signals;
    oos_signal_set left = {0};
    for (size_t i = 0; i < it->raw->literal_count; i++) {
        uint32_t const literal = it->raw->literals[i];
        if (!holds_word(it->text, s->words[literal])) continue;
        for (uint32_t o = s->first[literal]; o < s->first[literal + 1]; o++)
            oos_signal_add(&left, s->owners[o]);
    }
    for (size_t w = 0; w < OOS_SIGNAL_WORDS; w++) it->candidates.words[w] &= left.words[w];
}

/* What a user wrote is taken out of the line; the signals that only it held are dropped later. */
static size_t take_request(oos_collector *c, oos_hit_line *raw, size_t len)
{
    size_t lines;
    len = oos_usertext_mask(c->bench->shown, len, raw->after, &lines);
    c->user_line = raw->number;
    c->user_until = lines ? raw->number + lines : c->user_until;
    raw->after = oos_view_slice(raw->after, behind_lines(raw->after, lines), SIZE_MAX);
    return len;
}

/* The line may be called a failure: only then is it looked at whether it denies one. */
static bool may_fail(const oos_collector *c, item *it)
{
    bool words = false;
    for (size_t w = 0; w < OOS_SIGNAL_WORDS; w++)
        for (uint64_t bits = it->candidates.words[w]; bits; bits &= bits - 1) {
            oos_signal_kind const kind = c->signals->list[w * 64 + (size_t)__builtin_ctzll(bits)].kind;
            if (oos_signal_is_message(kind)) return true;
            words |= kind == OOS_SIGNAL_WORDING;
        }
    return words && says(c, it) == OOS_SAYS_LACK;
}

/* "OOMKilled": false, oom_kill 0, 0 out-of-memory errors, an address or the name of a test with such words: they are masked, and the rest
 * of the line says what it says. */
static void mask_denied(oos_collector *c, item *it)
{
    bool masked = false;
    for (size_t i = 0; i < c->signals->count; i++) {
        const oos_signal *signal = &c->signals->list[i];
        oos_match match;
        if (signal->kind != OOS_SIGNAL_DENY || !signal->pattern || !oos_signal_has(&it->candidates, i))
            continue;
        for (size_t at = 0; oos_pattern_find(signal->pattern, it->text, at, &match) && match.end > at;
             at = match.end) {
            memset(c->bench->line + (it->text.ptr - c->bench->line) + match.start, ' ',
                   match.end - match.start);
            masked = true;
        }
    }
    if (!masked) return;
    drop_masked(c, it);
    it->read = false;
    it->topics = 0;
}

void oos_collector_line(void *collector, const oos_hit_line *given)
{
    oos_collector *c = collector;
    oos_hit_line here = *given, *raw = &here;
    item it = {.raw = raw, .muted = c->muted_line == raw->number};
    if (is_users(c, raw)) return;
    bool const request = has_literal_of(c, raw, c->user_signal);
    if (!gather(c, raw, &it.candidates) && !request) return;
    oos_view const line = oos_view_slice(raw->text, 0, OOS_LINE_MAX_BYTES * 2);
    size_t len = oos_logline_uncolour(line, c->bench->shown);
    if (request) len = take_request(c, raw, len);
    it.shown = it.text = oos_normal_trim(unquoted((oos_view){c->bench->shown, len}));
    if (request) drop_masked(c, &it);
    if (is_our_own(it.shown)) return;
    if (raw->timed.ptr) raw->time = oos_logtime_read(raw->timed, oos_logtime_now());
    if (raw->time != OOS_TIME_NONE) c->time = raw->time;
    if (is_empty(&it.candidates)) return; /* most requests end here */
    c->version++;
    it.text = (oos_view){c->bench->line,
                         oos_normal_line(it.shown, raw->after, c->bench->line, OOS_LINE_MAX_BYTES * 2)};
    it.log = oos_logline_read(it.text);
    if (raw->source && !it.log.labelled) return; /* strings and comments */
    if (may_fail(c, &it)) mask_denied(c, &it);
    note_shape(&c->history, &it.log);
    if (is_open(c)) note_shape(&c->open, &it.log);

    if (oos_native_is_frame(it.log.message)) drop_sentences(c, &it.candidates);
    if (raw->document) drop_quotes(c, &it, &it.candidates);
    if (is_allocator_message(c, &it.candidates)) add_parts(c, &it.candidates);
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (size_t w = 0; w < OOS_SIGNAL_WORDS; w++)
            for (uint64_t bits = it.candidates.words[w]; bits; bits &= bits - 1) {
                size_t const index = w * 64 + (size_t)__builtin_ctzll(bits);
                if (c->signals->list[index].kind == order[k]) on_signal(c, &it, index);
            }
    if (is_open(c) &&
        (oos_known(&c->open, OOS_NUMBER_torch_allocated) || oos_known(&c->open, OOS_NUMBER_kv_needed)) &&
        c->from_message)
        c->message_complete = true;
    if (c->history.started == OOS_TIME_NONE) c->history.started = c->time;
}
