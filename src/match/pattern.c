/* Regular expressions run as a set of places in a small program, all advanced together over the text (Thompson's
 * construction): no backtracking, so no pattern is slow. Look-ahead runs its own small program at a place. */
#include "match/pattern.h"

enum { PROGRAM_MAX = 2048, NESTING_MAX = 32, LOOKS_MAX = 2, REPEAT_MAX = 64 };

typedef enum step_kind {
    STEP_CHAR,
    STEP_ANY,
    STEP_CLASS,
    STEP_SPLIT, /* go on at both x and y */
    STEP_JUMP,  /* go on at x */
    STEP_START,
    STEP_END,
    STEP_WORD_EDGE,
    STEP_LOOK,     /* the program at pc + 1 up to its MATCH must match here; then go on at x */
    STEP_LOOK_NOT, /* must not */
    STEP_MATCH
} step_kind;

typedef struct step {
    step_kind kind;
    uint16_t x, y;
    char c;
    uint64_t set[4]; /* CLASS: 256 bits */
} step;

struct oos_pattern {
    size_t count;
    step *steps;
};

/* ---- compiling ---- */

typedef struct compiler {
    const char *at, *end;
    step *steps;
    size_t count;
    unsigned depth, looks;
    bool failed;
} compiler;

static size_t emit(compiler *c, step s)
{
    if (c->count >= PROGRAM_MAX) {
        c->failed = true;
        return 0;
    }
    c->steps[c->count] = s;
    return c->count++;
}

static void set_add(uint64_t set[4], unsigned char c)
{
    set[c >> 6] |= (uint64_t)1 << (c & 63);
}

static bool set_has(const uint64_t set[4], unsigned char c)
{
    return set[c >> 6] >> (c & 63) & 1;
}

static bool is_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* \d \w \s and their opposites; false for any other letter. */
static bool set_of_escape(char letter, uint64_t set[4])
{
    uint64_t found[4] = {0};
    for (unsigned i = 0; i < 256; i++) {
        unsigned char const c = (unsigned char)i;
        bool in = false;
        switch (letter) {
        case 'd':
        case 'D': in = c >= '0' && c <= '9'; break;
        case 'w':
        case 'W': in = is_word(c); break;
        case 's':
        case 'S': in = c == ' ' || (c >= '\t' && c <= '\r'); break;
        default: return false;
        }
        if (in == (letter >= 'a')) set_add(found, c);
    }
    for (int i = 0; i < 4; i++) set[i] |= found[i];
    return true;
}

static char escaped(char letter)
{
    return letter == 'n' ? '\n' : letter == 't' ? '\t' : letter;
}

static void compile_class(compiler *c)
{
    step s = {.kind = STEP_CLASS};
    bool const negate = c->at < c->end && *c->at == '^';
    if (negate) c->at++;
    for (bool first = true;; first = false) {
        if (c->at >= c->end) {
            c->failed = true;
            return;
        }
        char from = *c->at++;
        if (from == ']' && !first) break;
        if (from == '\\') {
            if (c->at >= c->end) {
                c->failed = true;
                return;
            }
            char const letter = *c->at++;
            if (set_of_escape(letter, s.set)) continue;
            from = escaped(letter);
        }
        char to = from;
        if (c->end - c->at >= 2 && c->at[0] == '-' && c->at[1] != ']') {
            to = c->at[1];
            c->at += 2;
        }
        for (unsigned i = (unsigned char)from; i <= (unsigned char)to; i++) set_add(s.set, (unsigned char)i);
    }
    if (negate)
        for (int i = 0; i < 4; i++) s.set[i] = ~s.set[i];
    emit(c, s);
}

static void compile_either(compiler *c);

static void compile_group(compiler *c)
{
    bool look = false, negate = false;
    if (c->end - c->at >= 2 && c->at[0] == '?') {
        look = c->at[1] == '=' || c->at[1] == '!';
        negate = c->at[1] == '!';
        if (!look && c->at[1] != ':') {
            c->failed = true; /* named groups, flags, look-behind */
            return;
        }
        c->at += 2;
    }
    if (look && ++c->looks > LOOKS_MAX) {
        c->failed = true; /* each level multiplies the time */
        return;
    }
    size_t const head = look ? emit(c, (step){.kind = negate ? STEP_LOOK_NOT : STEP_LOOK}) : 0;
    compile_either(c);
    if (c->at >= c->end || *c->at++ != ')') {
        c->failed = true;
        return;
    }
    if (look) {
        emit(c, (step){.kind = STEP_MATCH});
        c->steps[head].x = (uint16_t)c->count;
        c->looks--;
    }
}

/* One letter, class or group. False at the end of an alternative. */
static bool compile_atom(compiler *c)
{
    if (c->at >= c->end || *c->at == '|' || *c->at == ')') return false;
    char const letter = *c->at++;
    switch (letter) {
    case '.': emit(c, (step){.kind = STEP_ANY}); break;
    case '^': emit(c, (step){.kind = STEP_START}); break;
    case '$': emit(c, (step){.kind = STEP_END}); break;
    case '[': compile_class(c); break;
    case '(': compile_group(c); break;
    case '*':
    case '+':
    case '?': c->failed = true; break;
    case '\\': {
        if (c->at >= c->end) {
            c->failed = true;
            break;
        }
        char const next = *c->at++;
        step s = {.kind = STEP_CLASS};
        if (next == 'b')
            emit(c, (step){.kind = STEP_WORD_EDGE});
        else if (next == 'Z')
            emit(c, (step){.kind = STEP_END});
        else if (next >= '1' && next <= '9')
            c->failed = true; /* back-reference */
        else if (set_of_escape(next, s.set))
            emit(c, s);
        else
            emit(c, (step){.kind = STEP_CHAR, .c = escaped(next)});
        break;
    }
    default: emit(c, (step){.kind = STEP_CHAR, .c = letter});
    }
    return !c->failed;
}

static bool goes_to_x(const step *s)
{
    return s->kind == STEP_SPLIT || s->kind == STEP_JUMP || s->kind == STEP_LOOK || s->kind == STEP_LOOK_NOT;
}

/* One free step at `first`; the steps behind it move up, and so do the places they name. */
static void make_room(compiler *c, size_t first)
{
    memmove(c->steps + first + 1, c->steps + first, (c->count - first) * sizeof *c->steps);
    c->count++;
    for (size_t i = first + 1; i < c->count; i++) {
        step *s = &c->steps[i];
        if (goes_to_x(s) && s->x >= first) s->x++;
        if (s->kind == STEP_SPLIT && s->y >= first) s->y++;
    }
}

/* Copy steps [first, first + len) to the end, with places inside them moved along. */
static void repeat(compiler *c, size_t first, size_t len)
{
    size_t const by = c->count - first;
    for (size_t i = 0; i < len && !c->failed; i++) {
        step s = c->steps[first + i];
        if (goes_to_x(&s)) s.x = (uint16_t)(s.x + by);
        if (s.kind == STEP_SPLIT) s.y = (uint16_t)(s.y + by);
        emit(c, s);
    }
}

/* The atom in steps [first, count) at least `least` and at most `most` times; UINT32_MAX: any number. */
static void quantify(compiler *c, size_t first, unsigned least, unsigned most)
{
    size_t const len = c->count - first;
    if (len == 0) return;
    if (least == 0) {
        if (c->count >= PROGRAM_MAX) {
            c->failed = true;
            return;
        }
        make_room(c, first); /* for a split: x into the atom, y behind all of it */
        c->steps[first] = (step){.kind = STEP_SPLIT, .x = (uint16_t)(first + 1)};
        if (most == UINT32_MAX)
            emit(c, (step){.kind = STEP_JUMP, .x = (uint16_t)first});
        else
            for (unsigned i = 1; i < most && !c->failed; i++) {
                size_t const split = emit(c, (step){.kind = STEP_SPLIT, .x = (uint16_t)(c->count + 1)});
                repeat(c, first + 1, len);
                c->steps[split].y = (uint16_t)c->count;
            }
        c->steps[first].y = (uint16_t)c->count;
        return;
    }
    size_t last = first;
    for (unsigned i = 1; i < least && !c->failed; i++) {
        last = c->count;
        repeat(c, first, len);
    }
    if (most == UINT32_MAX)
        emit(c, (step){.kind = STEP_SPLIT, .x = (uint16_t)last, .y = (uint16_t)(c->count + 1)});
    else
        for (unsigned i = least; i < most && !c->failed; i++) {
            size_t const split = emit(c, (step){.kind = STEP_SPLIT, .x = (uint16_t)(c->count + 1)});
            repeat(c, first, len);
            c->steps[split].y = (uint16_t)c->count;
        }
}

static bool read_number(compiler *c, unsigned *ret_number)
{
    unsigned number = 0;
    const char *start = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (number <= REPEAT_MAX) number = number * 10 + (unsigned)(*c->at - '0');
    if (number > REPEAT_MAX) c->failed = true;
    *ret_number = number;
    return c->at > start;
}

/* {m}, {m,}, {,n}, {m,n}. Anything else in braces is literal, as in Python. */
static bool compile_braces(compiler *c, size_t first)
{
    const char *const start = c->at++;
    unsigned least = 0, most = UINT32_MAX;
    bool const has_least = read_number(c, &least);
    bool const comma = c->at < c->end && *c->at == ',';
    if (comma) c->at++;
    bool const has_most = comma && read_number(c, &most);
    if (c->at >= c->end || *c->at != '}' || !(has_least || has_most)) {
        c->at = start;
        return false;
    }
    c->at++;
    if (!comma) most = least;
    if (comma && !has_most) most = UINT32_MAX;
    if (most < least || most == 0)
        c->failed = true;
    else
        quantify(c, first, has_least ? least : 0, most);
    return true;
}

static void compile_sequence(compiler *c)
{
    for (;;) {
        size_t const first = c->count;
        if (c->failed || !compile_atom(c)) return;
        for (bool more = true; more && c->at < c->end && !c->failed;) {
            switch (*c->at) {
            case '*': quantify(c, first, 0, UINT32_MAX); break;
            case '+': quantify(c, first, 1, UINT32_MAX); break;
            case '?': quantify(c, first, 0, 1); break;
            case '{':
                if (compile_braces(c, first)) continue;
                more = false;
                break;
            default: more = false; break;
            }
            if (!more) break;
            c->at++;
            if (c->at < c->end && *c->at == '?') c->at++; /* lazy: the same texts match */
            break;
        }
        if (c->at < c->end && *c->at == '{' && !c->failed) { /* a brace that stands for itself */
            c->at++;
            emit(c, (step){.kind = STEP_CHAR, .c = '{'});
        }
    }
}

static void compile_either(compiler *c)
{
    if (++c->depth > NESTING_MAX) {
        c->failed = true;
        return;
    }
    size_t const first = c->count;
    compile_sequence(c);
    if (!c->failed && c->at < c->end && *c->at == '|') {
        c->at++;
        if (c->count + 2 > PROGRAM_MAX) {
            c->failed = true;
            return;
        }
        /* split; first; jump end; rest */
        make_room(c, first);
        size_t const jump = emit(c, (step){.kind = STEP_JUMP});
        c->steps[first] = (step){.kind = STEP_SPLIT, .x = (uint16_t)(first + 1), .y = (uint16_t)c->count};
        compile_either(c);
        if (!c->failed) c->steps[jump].x = (uint16_t)c->count;
    }
    c->depth--;
}

const oos_pattern *oos_pattern_compile(oos_arena *arena, oos_view text)
{
    static _Thread_local step room[PROGRAM_MAX + 1];
    compiler c = {.at = text.ptr, .end = text.ptr + text.len, .steps = room};
    if (text.len == 0) return NULL;
    compile_either(&c);
    if (c.failed || c.at != c.end) return NULL;
    emit(&c, (step){.kind = STEP_MATCH});
    if (c.failed) return NULL;

    oos_pattern *pattern = OOS_NEW(arena, oos_pattern);
    step *steps = OOS_NEW_ARRAY(arena, step, c.count);
    if (!pattern || !steps) return NULL;
    memcpy(steps, room, c.count * sizeof *steps);
    *pattern = (oos_pattern){.count = c.count, .steps = steps};
    return pattern;
}

/* ---- matching ---- */

typedef struct place_list {
    uint16_t places[PROGRAM_MAX];
    size_t count;
    uint64_t seen[PROGRAM_MAX / 64];
} place_list;

typedef struct text_run {
    const oos_pattern *pattern;
    const char *text;
    size_t len;
} text_run;

static bool run(const text_run *t, size_t pc, size_t at, bool anywhere);

static bool word_edge(const text_run *t, size_t at)
{
    bool const before = at > 0 && is_word((unsigned char)t->text[at - 1]);
    bool const after = at < t->len && is_word((unsigned char)t->text[at]);
    return before != after;
}

/* Put a place and all that is reached from it without reading. True: the pattern has matched. */
static bool put(const text_run *t, place_list *list, size_t pc, size_t at)
{
    if (list->seen[pc / 64] >> (pc % 64) & 1) return false;
    list->seen[pc / 64] |= (uint64_t)1 << (pc % 64);
    const step *s = &t->pattern->steps[pc];
    switch (s->kind) {
    case STEP_MATCH: return true;
    case STEP_JUMP: return put(t, list, s->x, at);
    case STEP_SPLIT: return put(t, list, s->x, at) || put(t, list, s->y, at);
    case STEP_START: return at == 0 && put(t, list, pc + 1, at);
    case STEP_END: return at == t->len && put(t, list, pc + 1, at);
    case STEP_WORD_EDGE: return word_edge(t, at) && put(t, list, pc + 1, at);
    case STEP_LOOK: return run(t, pc + 1, at, false) && put(t, list, s->x, at);
    case STEP_LOOK_NOT: return !run(t, pc + 1, at, false) && put(t, list, s->x, at);
    case STEP_CHAR:
    case STEP_ANY:
    case STEP_CLASS: list->places[list->count++] = (uint16_t)pc; return false;
    }
    return false;
}

static bool reads(const step *s, unsigned char c)
{
    if (s->kind == STEP_CHAR) return (unsigned char)s->c == c;
    if (s->kind == STEP_ANY) return c != '\n';
    return set_has(s->set, c);
}

static bool run(const text_run *t, size_t pc, size_t at, bool anywhere)
{
    place_list lists[2];
    place_list *now = &lists[0], *next = &lists[1];
    now->count = 0;
    memset(now->seen, 0, sizeof now->seen);
    if (put(t, now, pc, at)) return true;
    for (; at < t->len && (now->count > 0 || anywhere); at++) {
        next->count = 0;
        memset(next->seen, 0, sizeof next->seen);
        for (size_t i = 0; i < now->count; i++) {
            size_t const place = now->places[i];
            if (reads(&t->pattern->steps[place], (unsigned char)t->text[at]) &&
                put(t, next, place + 1, at + 1))
                return true;
        }
        if (anywhere && put(t, next, pc, at + 1)) return true;
        place_list *const swap = now;
        now = next;
        next = swap;
    }
    return false;
}

bool oos_pattern_matches(const oos_pattern *pattern, const char *text)
{
    return run(&(text_run){pattern, text, strlen(text)}, 0, 0, false);
}

bool oos_pattern_searches(const oos_pattern *pattern, const char *text)
{
    return run(&(text_run){pattern, text, strlen(text)}, 0, 0, true);
}

/* ---- globs ---- */

static const char *glob_class(const char *glob, char c, bool *ret_in)
{
    bool const negate = *glob == '!';
    if (negate) glob++;
    bool in = false;
    for (bool first = true; *glob && (first || *glob != ']'); first = false) {
        char const from = *glob++;
        char to = from;
        if (glob[0] == '-' && glob[1] && glob[1] != ']') {
            to = glob[1];
            glob += 2;
        }
        in |= c >= from && c <= to;
    }
    *ret_in = in != negate;
    return *glob == ']' ? glob + 1 : NULL;
}

bool oos_glob_matches(const char *glob, const char *text)
{
    const char *star = NULL, *resume = NULL;
    for (;;) {
        if (*glob == '*') {
            star = ++glob;
            resume = text;
            continue;
        }
        if (*text == '\0' && *glob == '\0') return true;
        bool in = false;
        const char *after = NULL;
        if (*glob == '[' && *text) after = glob_class(glob + 1, *text, &in);
        if (after && in) {
            glob = after;
            text++;
        } else if (!after && *text && *glob && (*glob == '?' || *glob == *text)) {
            glob++;
            text++;
        } else {
            if (!star || *resume == '\0') return false;
            text = ++resume;
            glob = star;
        }
    }
}
