/* Commands in files whose kind nobody knows here: a Makefile, a task of a scheduler, a program. What stands there word for word is
 * taken as a shell would take it. And the device, by the words that cluster files name it with. */
#include "base/ascii.h"
#include "command/command.h"
#include "facts/facts.h"

#include <stdio.h>
#include <stdlib.h>

/* Lines counted while a text is read forward: its length once, however many places are asked for. */
typedef struct place_at {
    oos_view text;
    size_t at, line_start;
    uint32_t line;
} place_at;

static uint32_t line_of(place_at *place, size_t at)
{
    if (at < place->at) *place = (place_at){.text = place->text, .line = 1};
    for (; place->at < at; place->at++)
        if (place->text.ptr[place->at] == '\n') {
            place->line++;
            place->line_start = place->at + 1;
        }
    return place->line;
}

static bool in_comment(place_at *place, size_t at)
{
    (void)line_of(place, at);
    size_t first = place->line_start;
    oos_view const text = place->text;
    while (first < at && (text.ptr[first] == ' ' || text.ptr[first] == '\t')) first++;
    return first < text.len && (text.ptr[first] == '#' || text.ptr[first] == ';');
}

/* The end of a command that begins at `at`: that of its line, of the quotes around it, or of a block of lines that go on. */
static size_t command_end(oos_view text, size_t at, char quote)
{
    bool inner = false;
    for (; at < text.len; at++) {
        char const c = text.ptr[at];
        if (quote && c == quote && text.ptr[at - 1] != '\\') return at;
        if (!quote && c == '\'') inner = !inner;
        bool const goes_on = at > 0 && text.ptr[at - 1] == '\\';
        if (c == '\n' && !goes_on && !inner) return at;
    }
    return at;
}

/* A command stands at the beginning of its line, or of the value of a key; in a sentence it is only spoken of. */
static bool begins(oos_view text, size_t at)
{
    while (at > 0 && (text.ptr[at - 1] == ' ' || text.ptr[at - 1] == '\t')) at--;
    return at == 0 || strchr("\n:-\"'=([|&;@>", text.ptr[at - 1]);
}

/* What stands between quotes at `at`, behind spaces and `before`; *at moves behind it. NULL: something else does. */
static const char *python_text(oos_finder *finder, oos_view text, size_t *at, const char *before)
{
    while (*at < text.len && strchr(before, text.ptr[*at])) ++*at;
    char const quote = *at < text.len ? text.ptr[*at] : 0;
    if (quote != '"' && quote != '\'') return NULL;
    const char *close = memchr(text.ptr + *at + 1, quote, text.len - *at - 1);
    size_t const from = *at + 1, end = close ? (size_t)(close - text.ptr) : from;
    if (!close || end - from > OOS_WORD_MAX || !oos_finder_spend(finder, 0, end - from)) return NULL;
    *at = end + 1;
    return oos_arena_copy(finder->arena, oos_view_slice(text, from, end - from));
}

/* os.environ["NAME"] = "value", os.environ.setdefault(...) and os.putenv(...) of a program. */
static void python_environment(oos_finder *finder, oos_view text, oos_word_list *environment)
{
    static const char *const marks[] = {"os.environ[", "os.environ.setdefault(", "os.putenv("};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        place_at place = {.text = text, .line = 1};
        for (size_t at = 0; at < text.len && !finder->stopped;) {
            const char *found = memmem(text.ptr + at, text.len - at, marks[i], strlen(marks[i]));
            if (!found) break;
            size_t const from = (size_t)(found - text.ptr);
            at = from + strlen(marks[i]);
            if (in_comment(&place, from)) continue;
            const char *name = python_text(finder, text, &at, " ");
            const char *value = name ? python_text(finder, text, &at, i ? " ,\n" : " ]=") : NULL;
            if (value)
                oos_words_add(finder->arena, environment,
                              oos_arena_format(finder->arena, "%s=%s", name, value), line_of(&place, from));
        }
    }
}

/* `vllm serve ...` and `python -m vllm.entrypoints...` as text. */
static void take_text(oos_finder *finder, oos_view text, const char *mark, const oos_place *around)
{
    size_t const len = strlen(mark);
    place_at place = {.text = text, .line = 1};
    for (size_t at = 0; at + len < text.len && !finder->stopped;) {
        const char *found = memmem(text.ptr + at, text.len - at, mark, len);
        if (!found) return;
        size_t from = (size_t)(found - text.ptr);
        at = from + len;
        if (in_comment(&place, from) || !begins(text, from)) continue;
        char const before = from ? text.ptr[from - 1] : '\n';
        char const quote = before == '"' || before == '\'' ? before : 0;
        size_t const end = command_end(text, at, quote);
        size_t model = at;
        while (model < end && oos_is_space(text.ptr[model])) model++;
        if (model == end) continue; /* it is only spoken of */
        oos_finder_shell(finder, oos_view_slice(text, from, end - from), line_of(&place, from), 0, around);
        at = end;
    }
}

/* The quoted words from `at` up to the bracket; returns where they end. */
static size_t quoted_words(oos_finder *finder, oos_view text, size_t at, uint32_t line, oos_word_list *words)
{
    while (at < text.len && text.ptr[at] != ']' && !words->full) {
        char const quote = text.ptr[at];
        if (quote != '"' && quote != '\'') {
            at++;
            continue;
        }
        const char *close = memchr(text.ptr + at + 1, quote, text.len - at - 1);
        if (!close) return text.len;
        size_t const end = (size_t)(close - text.ptr);
        if (!oos_finder_spend(finder, line, end - at + 16)) return text.len;
        oos_words_add(finder->arena, words,
                      oos_arena_copy(finder->arena, oos_view_slice(text, at + 1, end - at - 1)), line);
        at = end + 1;
    }
    return at;
}

/* "vllm", "serve", "org/model", ...: each list of quoted words that begins with a mark; `module`: the words are behind `-m`. */
static void take_list(oos_finder *finder, oos_view text, const char *mark, const char *module,
                      const oos_place *around)
{
    place_at place = {.text = text, .line = 1};
    for (size_t at = 0; at < text.len && !finder->stopped;) {
        const char *found = memmem(text.ptr + at, text.len - at, mark, strlen(mark));
        if (!found) return;
        size_t const from = (size_t)(found - text.ptr);
        uint32_t const line = line_of(&place, from);
        oos_word_list words = {0};
        if (module) {
            oos_words_add(finder->arena, &words, "python", line);
            oos_words_add(finder->arena, &words, "-m", line);
            if (*module) oos_words_add(finder->arena, &words, module, line);
        }
        at = quoted_words(finder, text, from, line, &words);
        if (at == from) at++;
        oos_finder_offer(finder, &words, around);
    }
}

/* LLM(model="...", ...): balanced brackets, as one word. */
static void take_python(oos_finder *finder, oos_view text, const oos_word_list *environment)
{
    place_at place = {.text = text, .line = 1};
    for (size_t at = 0; at + 4 < text.len && !finder->stopped;) {
        const char *found = memmem(text.ptr + at, text.len - at, "LLM(", 4);
        if (!found) return;
        size_t const from = (size_t)(found - text.ptr);
        size_t depth = 1, end = from + 4;
        at = end;
        if (from && (oos_is_alnum(text.ptr[from - 1]) || text.ptr[from - 1] == '_')) continue;
        for (; end < text.len && depth; end++)
            depth += (size_t)(text.ptr[end] == '(') - (size_t)(text.ptr[end] == ')');
        at = end;
        uint32_t const line = line_of(&place, from);
        if (end - from > OOS_WORD_MAX) {
            oos_finder_skip(finder, line, "a call of LLM(...) of more than 64 KiB was not looked at");
            continue;
        }
        char *call = oos_finder_spend(finder, line, end - from)
                         ? oos_arena_copy(finder->arena, oos_view_slice(text, from, end - from))
                         : NULL;
        oos_word_list words = {0};
        for (char *c = call; c && *c; c++)
            if (*c == '\n' || *c == '\t') *c = ' ';
        for (size_t i = 0; i < environment->count && oos_finder_spend(finder, line, 32); i++)
            oos_words_add(finder->arena, &words, environment->list[i], environment->lines[i]);
        if (oos_words_add(finder->arena, &words, call, line))
            oos_finder_keep(finder, &words, (oos_found){.line = line, .kind = "Python"});
    }
}

void oos_finder_anywhere(oos_finder *finder, oos_view text)
{
    static const char *const pythons[] = {"python", "python3"};
    char mark[64];
    oos_word_list environment = {0};
    python_environment(finder, text, &environment);
    oos_place const around = {.environment = &environment};
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        const oos_engine_words *engine = oos_engine_list[i];
        snprintf(mark, sizeof mark, "%s serve ", engine->name);
        take_text(finder, text, mark, &around);
        for (size_t k = 0; k < 2; k++) {
            snprintf(mark, sizeof mark, "%s -m %s", pythons[k], engine->module);
            take_text(finder, text, mark, &around);
        }
        snprintf(mark, sizeof mark, "\"%s\"", engine->name);
        take_list(finder, text, mark, NULL, &around);
        mark[0] = mark[strlen(mark) - 1] = '\'';
        take_list(finder, text, mark, NULL, &around);
        snprintf(mark, sizeof mark, "\"%s", engine->module);
        take_list(finder, text, mark, "", &around);
    }
    snprintf(mark, sizeof mark, "\"%s\"", oos_engine_default->model_flags[0]);
    if (finder->count == 0) take_list(finder, text, mark, oos_engine_default->server, &around);
    take_python(finder, text, &environment);
}

/* ---- the device ----------------------------------------------------------------------------------------------------- */

static const char *value_behind(oos_arena *arena, oos_view text, const char *key)
{
    const char *found = memmem(text.ptr ? text.ptr : "", text.len, key, strlen(key));
    if (!found) return NULL;
    size_t from = (size_t)(found - text.ptr) + strlen(key);
    while (from < text.len && strchr(" \t\n\"':=-[", text.ptr[from])) from++;
    size_t end = from;
    while (end < text.len && !strchr(" \t\r\n\"',}]:", text.ptr[end])) end++;
    return end > from ? oos_arena_copy(arena, oos_view_slice(text, from, end - from)) : NULL;
}

const char *oos_finder_gpu(oos_arena *arena, oos_view text, bool *ret_sure)
{
    static const char *const selectors[] = {"nvidia.com/gpu.product",
                                            "cloud.google.com/gke-accelerator",
                                            "k8s.amazonaws.com/accelerator",
                                            "accelerators",
                                            "--gres=gpu",
                                            "--gpus-per-node",
                                            "gpu="};
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        const char *value = value_behind(arena, text, selectors[i]);
        if (value && strcmp(value, "operator") == 0)
            value = NULL; /* a term of an affinity, which is read as YAML */
        *ret_sure = i < 3;
        if (value && !oos_is_digit(*value)) return strncmp(value, "nvidia-", 7) == 0 ? value + 7 : value;
    }
    *ret_sure = false;
    return NULL;
}

const char *oos_finder_machine(oos_arena *arena, oos_view text)
{
    static const char *const types[] = {"node.kubernetes.io/instance-type",
                                        "beta.kubernetes.io/instance-type",
                                        "instance_type",
                                        "instanceType",
                                        "machine_type",
                                        "vm_size"};
    const char *type = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types && !type; i++)
        type = value_behind(arena, text, types[i]);
    return type;
}

/* "vllm==0.11.0" in what is installed before it starts. */
const char *oos_finder_release(oos_arena *arena, oos_view text)
{
    char mark[32];
    snprintf(mark, sizeof mark, "%s==", oos_engine_default->name);
    const char *found = memmem(text.ptr ? text.ptr : "", text.len, mark, strlen(mark));
    if (!found) return NULL;
    size_t const from = (size_t)(found - text.ptr) + strlen(mark);
    size_t end = from;
    while (end < text.len && (oos_is_digit(text.ptr[end]) || text.ptr[end] == '.')) end++;
    return end > from ? oos_arena_copy(arena, oos_view_slice(text, from, end - from)) : NULL;
}

/* The number behind `key`, where a device's name may stand between: --gres=gpu:a100:4; 0: there is none. */
static uint64_t number_behind(oos_view text, const char *key)
{
    const char *found = memmem(text.ptr ? text.ptr : "", text.len, key, strlen(key));
    if (!found) return 0;
    size_t at = (size_t)(found - text.ptr) + strlen(key);
    uint64_t number = 0;
    for (; at < text.len && !oos_is_space(text.ptr[at]); at++) {
        if (text.ptr[at] == ':' || text.ptr[at] == '=')
            number = 0;
        else if (oos_is_digit(text.ptr[at]) && number < 100000)
            number = number * 10 + (uint64_t)(text.ptr[at] - '0');
    }
    return number;
}

uint64_t oos_finder_slurm(oos_view text)
{
    if (!memmem(text.ptr ? text.ptr : "", text.len, "#SBATCH", 7)) return 0;
    uint64_t each = number_behind(text, "--gres=gpu");
    uint64_t const nodes = number_behind(text, "--nodes");
    if (!each) each = number_behind(text, "--gpus-per-node");
    return each * (nodes ? nodes : 1);
}

/* ---- HCL: Terraform and Nomad ----------------------------------------------------------------------------------- */

/* The text in quotes behind `at`. */
static const char *quoted(oos_arena *arena, oos_view text, size_t at, size_t *ret_end)
{
    const char *open = at < text.len ? memchr(text.ptr + at, '"', text.len - at) : NULL;
    if (!open) return NULL;
    size_t const from = (size_t)(open - text.ptr) + 1;
    const char *close = from < text.len ? memchr(text.ptr + from, '"', text.len - from) : NULL;
    if (!close) return NULL;
    *ret_end = (size_t)(close - text.ptr) + 1;
    return oos_arena_copy(arena, oos_view_slice(text, from, (size_t)(close - text.ptr) - from));
}

/* Where the value of `name = ` begins, from `at` on; SIZE_MAX: there is none. */
static size_t setting(oos_view text, const char *name, size_t at)
{
    size_t const len = strlen(name);
    while (at + len < text.len) {
        const char *found = memmem(text.ptr + at, text.len - at, name, len);
        if (!found) return SIZE_MAX;
        size_t const from = (size_t)(found - text.ptr);
        size_t end = from + len;
        while (end < text.len && (text.ptr[end] == ' ' || text.ptr[end] == '\t')) end++;
        bool const alone = from == 0 || !(oos_is_alnum(text.ptr[from - 1]) || text.ptr[from - 1] == '_');
        if (alone && end < text.len && text.ptr[end] == '=') return end + 1;
        at = from + len;
    }
    return SIZE_MAX;
}

void oos_finder_hcl(oos_finder *finder, oos_view text)
{
    static const char *const lists[] = {"args", "command"};
    size_t next = 0;
    place_at lines = {.text = text, .line = 1};
    for (size_t at; !finder->stopped && (at = setting(text, "image", next)) != SIZE_MAX;) {
        size_t end = at;
        const char *image = quoted(finder->arena, text, at, &end);
        if (!image || !oos_finder_spend(finder, line_of(&lines, at), strlen(image) + 64)) return;
        next = end;
        uint32_t const line = line_of(&lines, at);
        size_t const before = finder->count + finder->skip_count;
        size_t const other = setting(text, "image", end), last = other == SIZE_MAX ? text.len : other;
        oos_word_list words = {0};
        for (size_t i = 0; i < 2 && words.count == 0; i++) { /* behind the image, before the next one */
            size_t from = setting(oos_view_slice(text, 0, last), lists[i], end);
            if (from == SIZE_MAX) continue;
            while (from < last && (text.ptr[from] == ' ' || text.ptr[from] == '\t')) from++;
            if (from >= last || text.ptr[from] != '[') continue;
            const char *close = memchr(text.ptr + from, ']', text.len - from);
            size_t const stop = close ? (size_t)(close - text.ptr) : text.len;
            for (const char *word;
                 from < stop && !words.full && oos_finder_spend(finder, line, 32) &&
                 (word = quoted(finder->arena, oos_view_slice(text, 0, stop), from, &from));)
                oos_words_add(finder->arena, &words, word, line_of(&lines, from));
        }
        oos_place const place = {.image = image, .arguments = true};
        if (words.count) oos_finder_offer(finder, &words, &place);
        oos_finder_container(finder, &words, &place, line, before);
    }
}
