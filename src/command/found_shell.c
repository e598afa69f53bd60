/* Shell text, as far as commands that start an engine need it: words, quotes, line continuations, comments, here documents,
 * variables and arrays that the same text sets, `sh -c`. Nothing is run; a substitution stays unknown. */
#include "base/ascii.h"
#include "base/text.h"
#include "command/command.h"

typedef struct shell {
    oos_finder *finder;
    const char *at, *end;
    uint32_t line;
    oos_text word; /* the word being read */
    bool in_word;
    bool cut;             /* it grew past OOS_WORD_MAX: the command is not looked at */
    const char *here_end; /* the end of a here document that begins on the next line, NULL */
} shell;

static const char *copy(oos_finder *finder, oos_view text)
{
    if (!oos_finder_spend(finder, 0, text.len + 16)) return "";
    const char *made = oos_arena_copy(finder->arena, text);
    if (!made) finder->failed = true;
    return made ? made : "";
}

/* ---- variables ------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(oos_view name)
{
    uint32_t hash = 2166136261U; /* FNV-1a */
    for (size_t i = 0; i < name.len; i++) hash = (hash ^ (unsigned char)name.ptr[i]) * 16777619U;
    return hash;
}

static const oos_variable *variable_find(const oos_finder *finder, oos_view name)
{
    uint32_t const hash = hash_of(name);
    for (size_t i = finder->variable_count; i > 0; i--)
        if (finder->variables[i - 1].hash == hash && oos_view_is(name, finder->variables[i - 1].name))
            return &finder->variables[i - 1];
    return NULL;
}

void oos_finder_set(oos_finder *finder, const char *name, const char *const *words, size_t count)
{
    oos_variable *known = (oos_variable *)(uintptr_t)variable_find(finder, oos_view_of(name));
    if (!known && finder->variable_count == OOS_FOUND_VARIABLES_MAX) {
        oos_finder_stop(finder, 0, "it sets more than 1,024 variables");
        return;
    }
    if (!known) known = &finder->variables[finder->variable_count++];
    *known = (oos_variable){.name = name, .words = words, .count = count, .hash = hash_of(oos_view_of(name))};
}

void oos_finder_set_assignment(oos_finder *finder, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    const char **value = OOS_NEW(finder->arena, const char *);
    if (!equals || !value) return;
    *value = equals + 1;
    oos_finder_set(finder, copy(finder, (oos_view){assignment, (size_t)(equals - assignment)}), value, 1);
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

static void word_put(shell *s, const char *text, size_t len)
{
    s->in_word = true;
    if (s->word.len + len > OOS_WORD_MAX) {
        s->cut = true;
        return;
    }
    oos_text_add(&s->word, (oos_view){text, len});
}

static void word_end(shell *s, oos_word_list *words, uint32_t line)
{
    if (!s->in_word) return;
    if (words->count == OOS_WORDS_MAX) {
        words->full = true;
        s->word.len = 0;
        s->in_word = false;
        return;
    }
    const char *made = copy(s->finder, (oos_view){s->word.ptr ? s->word.ptr : "", s->word.len});
    oos_words_add(s->finder->arena, words, made, line);
    s->word.len = 0;
    s->in_word = false;
}

static size_t name_len(const char *at, const char *end)
{
    size_t len = 0;
    while (at + len < end && (oos_is_alnum(at[len]) || at[len] == '_')) len++;
    return len;
}

/* The matching bracket of a substitution, or the end. */
static const char *balanced(const char *at, const char *end, char open, char close)
{
    unsigned depth = 0;
    for (; at < end; at++) {
        if (*at == open) depth++;
        if (*at == close && --depth == 0) return at;
    }
    return end;
}

/* A value without quotes is taken apart at its spaces. */
static void put_value(shell *s, oos_word_list *words, const char *value, bool quoted, uint32_t line)
{
    if (!oos_finder_spend(s->finder, line, strlen(value) + 16)) return;
    if (quoted) {
        word_put(s, value, strlen(value));
        return;
    }
    while (*value && !s->finder->stopped) {
        size_t const len = strcspn(value, " \t\n"), gap = strspn(value + len, " \t\n");
        if (len) word_put(s, value, len);
        if (gap) word_end(s, words, line);
        value += len + gap;
    }
}

static void put_variable(shell *s, oos_word_list *words, const oos_variable *known, bool quoted,
                         uint32_t line)
{
    for (size_t i = 0; i < known->count && !s->finder->stopped; i++) {
        if (i) word_end(s, words, line);
        put_value(s, words, known->words[i], quoted || known->count > 1, line);
    }
}

/* At a dollar sign: put its value in, or leave it as it stands and remember that it is not known. */
static void take_dollar(shell *s, oos_word_list *words, bool quoted)
{
    const char *start = s->at++;
    uint32_t const line = s->line;
    oos_view name = {NULL, 0}, otherwise = {NULL, 0};
    bool has_otherwise = false;
    if (s->at < s->end && *s->at == '$') { /* compose writes $$ for $ */
        s->at++;
        word_put(s, "$", 1);
        return;
    }
    if (s->at < s->end && *s->at == '{') {
        const char *close = balanced(s->at, s->end, '{', '}');
        const char *from = s->at + 1;
        size_t const len = name_len(from, close);
        name = (oos_view){from, len};
        const char *rest = from + len;
        if (rest < close && *rest == ':') rest++;
        if (rest < close && *rest == '-' && len) {
            otherwise = (oos_view){rest + 1, (size_t)(close - rest - 1)};
            has_otherwise = true;
        }
        s->at = close < s->end ? close + 1 : s->end;
    } else if (s->at < s->end && *s->at == '(') {
        const char *close = balanced(s->at, s->end, '(', ')');
        name = (oos_view){s->at + 1, (size_t)(close - s->at - 1)}; /* Kubernetes: $(NAME) */
        if (name_len(name.ptr, name.ptr + name.len) != name.len) name.len = 0;
        s->at = close < s->end ? close + 1 : s->end;
    } else if (s->at < s->end && (*s->at == '@' || *s->at == '*')) {
        s->at++;
        s->in_word |= quoted;
        if (quoted && s->word.len == 0) s->in_word = false;
        return; /* the arguments of a script are not known; most of the time there are none */
    } else {
        name = (oos_view){s->at, name_len(s->at, s->end)};
        s->at += name.len;
    }
    const oos_variable *known = name.len ? variable_find(s->finder, name) : NULL;
    if (known && (known->count != 1 || *known->words[0] || !has_otherwise)) {
        put_variable(s, words, known, quoted, line);
    } else if (has_otherwise) {
        put_value(s, words, copy(s->finder, otherwise), quoted, line);
    } else {
        oos_view const text = {start, (size_t)(s->at - start)};
        word_put(s, text.ptr, text.len);
        s->finder->unknown = copy(s->finder, text);
    }
    for (const char *c = start; c < s->at; c++) s->line += *c == '\n';
}

static void take_quoted(shell *s, oos_word_list *words, char quote)
{
    s->in_word = true;
    for (s->at++; s->at < s->end && *s->at != quote;) {
        if (*s->at == '\n') s->line++;
        if (quote == '"' && *s->at == '\\' && s->at + 1 < s->end && strchr("\\\"$`\n", s->at[1])) {
            if (s->at[1] != '\n') word_put(s, s->at + 1, 1);
            s->line += s->at[1] == '\n';
            s->at += 2;
        } else if (quote == '"' && *s->at == '$') {
            take_dollar(s, words, true);
        } else {
            word_put(s, s->at++, 1);
        }
    }
    if (s->at < s->end) s->at++;
}

/* A redirection and its target are no words of the command; a here document is passed over behind this line. */
static void take_redirection(shell *s)
{
    if (s->word.len && s->word.ptr[s->word.len - 1] >= '0' && s->word.ptr[s->word.len - 1] <= '9' &&
        s->word.len == 1)
        s->word.len = 0, s->in_word = false;
    bool const here =
        s->end - s->at >= 2 && s->at[0] == '<' && s->at[1] == '<' && (s->end - s->at < 3 || s->at[2] != '<');
    while (s->at < s->end && strchr("<>&|-", *s->at)) s->at++;
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t')) s->at++;
    const char *from = s->at;
    while (s->at < s->end && !strchr(" \t\n;&|<>()", *s->at)) s->at++;
    size_t len = (size_t)(s->at - from);
    if (len > 1 && strchr("'\"\\", *from)) {
        from++;
        len -= len > 2 && strchr("'\"", from[len - 2]) ? 2 : 1;
    }
    if (here && len) s->here_end = copy(s->finder, (oos_view){from, len});
}

static void skip_here_document(shell *s)
{
    size_t const want = strlen(s->here_end);
    while (s->at < s->end) {
        const char *line_end = memchr(s->at, '\n', (size_t)(s->end - s->at));
        if (!line_end) line_end = s->end;
        const char *from = s->at;
        while (from < line_end && *from == '\t') from++;
        bool const last = (size_t)(line_end - from) == want && memcmp(from, s->here_end, want) == 0;
        s->at = line_end < s->end ? line_end + 1 : s->end;
        s->line++;
        if (last) break;
    }
    s->here_end = NULL;
}

/* The words up to the end of one simple command. Returns the character that ended it, 0 at the end of the text. */
static char take_command(shell *s, oos_word_list *words)
{
    uint32_t line = s->line;
    while (s->at < s->end && !s->finder->stopped) {
        char const c = *s->at;
        s->finder->line = s->line;
        if (!s->in_word) line = s->line;
        if (c == '\\' && s->at + 1 < s->end) {
            bool const crlf = s->at[1] == '\r' && s->at + 2 < s->end && s->at[2] == '\n';
            if (s->at[1] == '\n' || crlf) {
                s->line++;
                s->at += crlf ? 3 : 2;
                continue;
            }
            word_put(s, s->at + 1, 1);
            s->at += 2;
        } else if (c == '\'' || c == '"') {
            take_quoted(s, words, c);
        } else if (c == '$') {
            take_dollar(s, words, false);
        } else if (c == '`') {
            const char *close = memchr(s->at + 1, '`', (size_t)(s->end - s->at - 1));
            const char *from = s->at;
            s->at = close ? close + 1 : s->end;
            word_put(s, from, (size_t)(s->at - from));
            s->finder->unknown = copy(s->finder, (oos_view){from, (size_t)(s->at - from)});
        } else if (c == '#' && !s->in_word) {
            while (s->at < s->end && *s->at != '\n') s->at++;
        } else if (c == '<' || c == '>') {
            take_redirection(s);
        } else if (strchr(" \t\r", c)) {
            word_end(s, words, line);
            s->at++;
        } else if (strchr("\n;&|()", c)) {
            word_end(s, words, line);
            s->at++;
            if (c == '\n') {
                s->line++;
                if (s->here_end) skip_here_document(s);
            }
            return c;
        } else {
            word_put(s, s->at++, 1);
        }
    }
    word_end(s, words, line);
    return 0;
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static bool is_assignment(const char *word)
{
    size_t const len = name_len(word, word + strlen(word));
    return len && !oos_is_digit(*word) && word[len] == '=';
}

static bool is_word(const char *word, const char *const *list)
{
    const char *slash = strrchr(word, '/');
    for (; *list; list++)
        if (strcmp(slash ? slash + 1 : word, *list) == 0) return true;
    return false;
}

/* NAME=(a b c): an array, its words until the bracket that closes it. */
static void take_array(shell *s, const char *assignment)
{
    oos_word_list items = {0};
    while (s->at < s->end && !s->finder->stopped) {
        char const ended = take_command(s, &items);
        if (ended == ')' || ended == 0) break;
    }
    size_t len = strlen(assignment);
    while (len && (assignment[len - 1] == '=' || assignment[len - 1] == '+')) len--;
    if (items.full)
        oos_finder_skip(s->finder, s->line, "an array of more than 1,024 words was not looked at");
    oos_finder_set(s->finder, copy(s->finder, (oos_view){assignment, len}), items.list, items.count);
}

/* What later commands find in their environment; a variable that is there already gets the new value. */
static void export_put(shell *s, oos_word_list *exported, const char *assignment)
{
    size_t const len = strcspn(assignment, "=") + 1;
    for (size_t i = 0; i < exported->count; i++)
        if (strncmp(exported->list[i], assignment, len) == 0) {
            exported->list[i] = assignment;
            return;
        }
    if (oos_finder_spend(s->finder, s->line, exported->count))
        oos_words_add(s->finder->arena, exported, assignment, s->line);
}

/* Assignments that stand alone, or behind `export`, hold for what follows. */
static bool take_assignments(shell *s, const oos_word_list *words, oos_word_list *exported)
{
    static const char *const makers[] = {"export", "declare", "local", "readonly", "typeset", NULL};
    size_t at = words->count && is_word(words->list[0], makers) ? 1 : 0;
    while (at && at < words->count && words->list[at][0] == '-') at++;
    for (size_t i = at; i < words->count; i++)
        if (!is_assignment(words->list[i])) return false;
    bool const exports = words->count && strcmp(words->list[0], "export") == 0;
    for (size_t i = at; i < words->count; i++) {
        oos_finder_set_assignment(s->finder, words->list[i]);
        if (exports) export_put(s, exported, words->list[i]);
    }
    return true;
}

/* `bash -lc TEXT`: the index of TEXT, SIZE_MAX when it is something else. */
static size_t script_index(const oos_word_list *words)
{
    static const char *const shells[] = {"sh", "bash", "zsh", "dash", "ash", NULL};
    for (size_t i = 0; i + 2 < words->count; i++) {
        if (!is_word(words->list[i], shells)) continue;
        for (size_t k = i + 1; k + 1 < words->count && words->list[k][0] == '-'; k++)
            if (words->list[k][1] != '-' && strchr(words->list[k], 'c')) return k + 1;
    }
    return SIZE_MAX;
}

static bool is_detached(const oos_word_list *words)
{
    static const char *const programs[] = {"docker", "podman", "nerdctl", NULL};
    bool detached = false;
    for (size_t i = 1; i < words->count && is_word(words->list[0], programs); i++)
        detached |= strcmp(words->list[i], "-d") == 0 || strcmp(words->list[i], "--detach") == 0;
    return detached;
}

/* A command, with those that still run beside it: what was put into the background runs until somebody waits for it or ends it. */
static void offer_beside(oos_finder *finder, const oos_word_list *words, oos_place *place, uint32_t *beside,
                         bool background)
{
    static const char *const enders[] = {"wait", "kill", "pkill", "killall", "docker", "podman", NULL},
                             *const elsewhere[] = {"srun", "mpirun", "ssh", "kubectl", NULL};
    bool const detached = is_detached(words);
    if (!detached && is_word(words->list[0], enders) &&
        (words->count < 2 || strcmp(words->list[1], "run") != 0))
        *beside = 0;
    if ((background || detached) && !*beside && !place->shares) *beside = ++finder->group;
    static const char *const containers[] = {"docker", "podman", "nerdctl", "ssh", NULL};
    const oos_word_list *const environment = place->environment;
    if (is_word(words->list[0], containers)) place->environment = NULL; /* they have one of their own */
    uint32_t const outer = place->shares;
    if (*beside && !is_word(words->list[0], elsewhere)) place->shares = *beside;
    oos_finder_offer(finder, words, place);
    place->shares = outer;
    place->environment = environment;
}

/* `source other.sh`. Files of the machine and of an environment of Python start no engine. */
static bool is_taken_in(const oos_word_list *words)
{
    if (words->count < 2 || (strcmp(words->list[0], "source") != 0 && strcmp(words->list[0], ".") != 0))
        return false;
    const char *name = words->list[1], *tail = strrchr(name, '/');
    return name[0] != '/' && name[0] != '~' && strcmp(tail ? tail + 1 : name, "activate") != 0;
}

void oos_finder_shell(oos_finder *finder, oos_view text, uint32_t line, unsigned depth,
                      const oos_place *place)
{
    shell s = {.finder = finder, .at = text.ptr, .end = text.ptr + text.len, .line = line};
    oos_place commands = place ? *place : (oos_place){0};
    commands.arguments = false; /* a script names its programs */
    oos_word_list exported = {0};
    for (size_t i = 0; commands.environment && i < commands.environment->count; i++)
        oos_words_add(finder->arena, &exported, commands.environment->list[i],
                      commands.environment->lines[i]);
    commands.environment = &exported;
    uint32_t beside = 0; /* commands that go on in the background, and what is started beside them */
    while (s.at < s.end && !finder->failed && !finder->stopped) {
        oos_word_list words = {0};
        finder->unknown = NULL;
        s.cut = false;
        char const ended = take_command(&s, &words);
        if (finder->failed || finder->stopped) break;
        if (s.cut) {
            oos_finder_skip(finder, words.count ? words.lines[0] : s.line,
                            "a word of more than 64 KiB, with its variables put in, was not looked at");
            continue;
        }
        const char *last = words.count ? words.list[words.count - 1] : "";
        if (ended == '(' && is_assignment(last) && last[strlen(last) - 1] == '=') {
            take_array(&s, last);
            continue;
        }
        if (!words.count || take_assignments(&s, &words, &exported)) continue;
        if (is_taken_in(&words)) oos_finder_take_in(finder, words.lines[0], words.list[1], &finder->sourced);
        size_t const script = script_index(&words);
        if (script != SIZE_MAX && depth < OOS_SHELL_DEPTH)
            oos_finder_shell(finder, oos_view_of(words.list[script]), words.lines[script], depth + 1,
                             &commands);
        else if (script != SIZE_MAX)
            oos_finder_skip(finder, words.lines[0], "a shell inside %d others was not looked at",
                            OOS_SHELL_DEPTH);
        else
            offer_beside(finder, &words, &commands, &beside, ended == '&' && (s.at == s.end || *s.at != '&'));
    }
    finder->unknown = NULL;
    finder->failed |= s.word.failed;
    oos_text_free(&s.word);
}

void oos_finder_split(oos_finder *finder, oos_view text, uint32_t line, oos_word_list *words)
{
    shell s = {.finder = finder, .at = text.ptr, .end = text.ptr + text.len, .line = line};
    while (s.at < s.end && !finder->stopped && take_command(&s, words) != 0) {
    }
    if (s.cut)
        oos_finder_skip(finder, line,
                        "a word of more than 64 KiB, with its variables put in, was not looked at");
    oos_text_free(&s.word);
}
