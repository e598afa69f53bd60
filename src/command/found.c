/* What kind of file it is, whether words start the engine, and what comments declare. Reading each kind is left to the
 * files beside this one. */
#include "command/command.h"
#include "facts/facts.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/locale.h"

#include <stdarg.h>
#include <stdlib.h>

enum {
    UNFOLDED_MAX = 24 << 20, /* bytes beside those of the file */
    TAKEN_IN_MAX = 256       /* files that one names */
};

bool oos_words_add(oos_arena *arena, oos_word_list *words, const char *word, uint32_t line)
{
    if (!word) return false;
    if (words->count == OOS_WORDS_MAX) {
        words->full = true;
        return false;
    }
    if (words->count == words->room) {
        size_t const room = words->room ? words->room * 4 : 16;
        const char **list = OOS_NEW_ARRAY(arena, const char *, room);
        uint32_t *lines = OOS_NEW_ARRAY(arena, uint32_t, room);
        if (!list || !lines) return false;
        if (words->count) memcpy(list, words->list, words->count * sizeof *list);
        if (words->count) memcpy(lines, words->lines, words->count * sizeof *lines);
        words->list = list;
        words->lines = lines;
        words->room = room;
    }
    words->list[words->count] = word;
    words->lines[words->count++] = line;
    return true;
}

/* ---- what is not looked at ------------------------------------------------------------------------------------- */

void oos_finder_skip(oos_finder *finder, uint32_t line, const char *format, ...)
{
    if (finder->skip_count == finder->skip_room) {
        size_t const room = finder->skip_room ? finder->skip_room * 2 : 8;
        oos_found_skip *skips = OOS_NEW_ARRAY(finder->arena, oos_found_skip, room);
        if (!skips) {
            finder->failed = true;
            return;
        }
        if (finder->skip_count) memcpy(skips, finder->skips, finder->skip_count * sizeof *skips);
        finder->skips = skips;
        finder->skip_room = room;
    }
    va_list args;
    va_start(args, format);
    const char *what = oos_arena_vformat(finder->arena, format, args);
    va_end(args);
    if (!what)
        finder->failed = true;
    else
        finder->skips[finder->skip_count++] =
            (oos_found_skip){.line = line ? line : finder->line, .what = what};
}

void oos_finder_stop(oos_finder *finder, uint32_t line, const char *why)
{
    if (!finder->stopped) oos_finder_skip(finder, line, "this and what follows was not looked at: %s", why);
    finder->stopped = true;
}

bool oos_finder_take_in(oos_finder *finder, uint32_t line, const char *name, oos_word_list *list)
{
    const char *slash = name[0] == '/' ? NULL : strrchr(finder->path, '/');
    if (list->count == TAKEN_IN_MAX) return false;
    const char *path = oos_arena_format(finder->arena, "%.*s%s", slash ? (int)(slash + 1 - finder->path) : 0,
                                        finder->path, name);
    if (!path || !oos_words_add(finder->arena, list, path, line)) finder->failed = true;
    return true;
}

bool oos_finder_spend(oos_finder *finder, uint32_t line, size_t bytes)
{
    finder->spent_bytes += bytes;
    if (finder->spent_bytes > finder->most_bytes)
        oos_finder_stop(finder, line, "variables and aliases unfold to too much");
    return !finder->stopped && !finder->failed;
}

/* ---- does it start the engine? --------------------------------------------------------------------------------- */

bool oos_is_among(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0) return true;
    return false;
}

static bool is_assignment(const char *word)
{
    size_t len = 0;
    while (oos_is_alnum(word[len]) || word[len] == '_') len++;
    return len && !oos_is_digit(word[0]) && word[len] == '=';
}

static bool is_number(const char *word)
{
    char *end;
    oos_real_read(word, &end);
    return end != word && (!*end || (end[1] == '\0' && strchr("smhd", *end)));
}

/* Programs that run the words behind them. */
static bool is_wrapper(const char *word)
{
    static const char *const names[] = {
        "exec",    "sudo",     "nohup",   "env",      "time",    "nice", "ionice",    "stdbuf", "setsid",
        "numactl", "taskset",  "timeout", "uv",       "poetry",  "pixi", "run",       "uvx",    "tini",
        "conda",   "oomsight", "then",    "do",       "else",    "if",   "dumb-init", "!",      "{",
        "python",  "python3",  "command", "nsys",     "profile", "chrt", "while",     "srun",   "mpirun",
        "--",      "until",    "&&",      "torchrun", NULL};
    return oos_is_among(oos_base_name(word), names) || strncmp(oos_base_name(word), "python3.", 8) == 0;
}

/* The image starts the server by itself. */
static bool serves(const oos_engine_words *engine)
{
    return engine && engine->image_serves;
}

/* The index of the program that words run, behind assignments and what only runs others; the number of words: there is none. */
static size_t program_index(const oos_word_list *words)
{
    size_t i = 0;
    while (i < words->count &&
           (is_assignment(words->list[i]) || is_wrapper(words->list[i]) || words->list[i][0] == '-'))
        i++;
    return i;
}

static const char *program_of(const oos_word_list *words)
{
    size_t const at = program_index(words);
    return at < words->count ? oos_base_name(words->list[at]) : "";
}

static bool is_container(const oos_word_list *words)
{
    static const char *const containers[] = {"docker", "podman", "nerdctl", NULL};
    return oos_is_among(program_of(words), containers);
}

/* `docker run`, not `docker pull`: the verb is the first word behind it that is no option, or `container run`. */
static bool starts_container(const oos_word_list *words)
{
    static const char *const verbs[] = {"run", "create", NULL};
    for (size_t i = program_index(words) + 1; i < words->count; i++) {
        const char *word = words->list[i];
        if (word[0] == '-' || strcmp(word, "container") == 0) continue;
        if (oos_is_among(word, verbs)) return true;
        if (words->list[i - 1][0] != '-') return false; /* else the value of an option */
    }
    return false;
}

typedef enum purpose {
    PURPOSE_OTHER,    /* has nothing to do with an engine */
    PURPOSE_START,    /* starts it */
    PURPOSE_ASKS_ONLY /* asks about a start, as `oomsight plan -- vllm serve` does */
} purpose;

/* What the words do, and the index of the word that names the engine. */
static purpose words_purpose(const oos_word_list *words, size_t *ret_entry)
{
    bool const container = is_container(words);
    *ret_entry = SIZE_MAX;
    if (container && !starts_container(words)) return PURPOSE_ASKS_ONLY;
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->list[i], *next = i + 1 < words->count ? words->list[i + 1] : "";
        *ret_entry = i;
        if (oos_engine_words_at(word, next)) return PURPOSE_START;
        if (strcmp(oos_base_name(word), "oomsight") == 0 && strcmp(next, "run") != 0)
            return PURPOSE_ASKS_ONLY;
        if (container) {
            if (serves(oos_engine_words_of_image(word)) && i > 0 && word[0] != '-') return PURPOSE_START;
            continue; /* options of `docker run` may be anything */
        }
        bool const of_option = i > 0 && words->list[i - 1][0] == '-';
        if (!is_assignment(word) && !is_wrapper(word) && word[0] != '-' && !is_number(word) && !of_option)
            break;
    }
    *ret_entry = SIZE_MAX;
    return PURPOSE_OTHER;
}

/* A server of models that is not planned: the program itself, or what a container or Python runs. */
static const char *other_started(const oos_word_list *words)
{
    const char *other = oos_engine_other(program_of(words));
    bool const container = is_container(words) && starts_container(words);
    for (size_t i = 1; i < words->count && !other; i++) {
        const char *word = words->list[i];
        if (strcmp(words->list[i - 1], "-m") == 0 || (container && word[0] != '-' && !strchr(word, '=')))
            other = oos_engine_other(word);
    }
    return other;
}

/* Words that hold a start without being one: `ssh host "vllm serve m"`. Programs that only print or look for text do not count. */
static const char *start_inside(const oos_word_list *words, bool *ret_other)
{
    static const char *const speakers[] = {
        "echo", "printf", "grep", "egrep", "rg",  "pgrep", "pkill", "kill", "ps",   "killall", "cat", "sed",
        "awk",  "which",  "type", "test",  "[",   "[[",    "log",   "info", "warn", "error",   "die", "pip",
        "pip3", "git",    "curl", "case",  "for", "in",    "read",  "set",  "trap", "alias",   NULL};
    const char *program = program_of(words);
    if (oos_is_among(program, speakers)) return NULL;
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->list[i], *next = i + 1 < words->count ? words->list[i + 1] : "";
        if (oos_engine_words_at(word, next)) return oos_engine_words_at(word, next)->title;
        for (size_t k = 0; k < OOS_ENGINE_COUNT; k++) {
            const oos_engine_words *engine = oos_engine_list[k];
            const char *at = strstr(word, engine->name);
            bool const serves_it = at && strncmp(at + strlen(engine->name), " serve ", 7) == 0;
            if (serves_it || strstr(word, engine->module)) return engine->title;
        }
    }
    const char *other = other_started(words);
    *ret_other = other != NULL;
    return other;
}

/* "vllm/vllm-openai:v0.19.1-cu129" -> "0.19.1" */
const char *oos_image_version(oos_arena *arena, const char *image)
{
    const char *colon = image && oos_engine_named(image) ? strrchr(image, ':') : NULL;
    if (!colon || strchr(colon, '/')) return NULL;
    const char *from = colon + 1 + (colon[1] == 'v');
    size_t len = 0, dots = 0;
    while (oos_is_digit(from[len]) || (from[len] == '.' && oos_is_digit(from[len + 1])))
        dots += from[len++] == '.';
    if (dots >= 1 && oos_is_digit(from[0])) return oos_arena_copy(arena, (oos_view){from, len});
    static const char *const moving[] = {"nightly", "dev", "main", "edge"}; /* built between releases */
    for (size_t i = 0; i < sizeof moving / sizeof *moving; i++)
        if (strncmp(from, moving[i], strlen(moving[i])) == 0 || (i == 0 && strstr(from, moving[0])))
            return moving[0];
    return NULL;
}

static bool has_model(const oos_word_list *words)
{
    for (size_t i = 0; i < words->count; i++)
        if (oos_flag_is(words->list[i], oos_engine_default->model_flags[0])) return true;
    return words->count && words->list[0][0] != '-';
}

/* The place of one more command; NULL: there is none, and that is told. */
static oos_found *found_next(oos_finder *finder, uint32_t line)
{
    if (finder->count == OOS_FOUND_MAX) oos_finder_stop(finder, line, "there are more than 20,000 commands");
    if (finder->stopped) return NULL;
    if (finder->count == finder->room) {
        size_t const room = finder->room ? finder->room * 2 : 16;
        oos_found *list = OOS_NEW_ARRAY(finder->arena, oos_found, room);
        if (!list) {
            finder->failed = true;
            return NULL;
        }
        if (finder->count) memcpy(list, finder->list, finder->count * sizeof *list);
        finder->list = list;
        finder->room = room;
    }
    return &finder->list[finder->count++];
}

/* "{{ .Values.model }}", "{{- include "x" . }}": what Helm fills in. A chat template of Jinja is none. */
static bool is_of_helm(const char *word)
{
    const char *at = strstr(word, "{{");
    if (!at) return false;
    at += 2 + (at[2] == '-');
    at += strspn(at, " ");
    return *at == '.' || *at == '$' || strncmp(at, "include ", 8) == 0 || strncmp(at, "tpl ", 4) == 0;
}

bool oos_finder_keep(oos_finder *finder, const oos_word_list *whole, oos_found found)
{
    for (size_t i = 0; i < whole->count; i++)
        if (is_of_helm(whole->list[i])) return finder->templates = true;
    found.words = whole->list;
    found.count = whole->count;
    found.lines = whole->lines;
    found.shown = oos_command_shown(finder->arena, whole->list, whole->count, &found.shown_count);
    if (!found.shown) finder->failed = true;
    oos_found *place = found.shown ? found_next(finder, found.line) : NULL;
    if (place) *place = found;
    return true;
}

/* `IMAGE --model m`, as we print the command of a container. */
static bool is_image_alone(const oos_word_list *words, size_t *ret_entry)
{
    size_t const at = program_index(words);
    if (at + 1 >= words->count || !serves(oos_engine_words_of_image(words->list[at]))) return false;
    *ret_entry = at;
    return true;
}

bool oos_finder_offer(oos_finder *finder, const oos_word_list *words, const oos_place *place)
{
    static const oos_place nowhere = {0};
    size_t entry;
    if (!place) place = &nowhere;
    purpose what = words_purpose(words, &entry);
    if (what == PURPOSE_OTHER && finder->pasted && is_image_alone(words, &entry)) what = PURPOSE_START;
    finder->asks |= what == PURPOSE_ASKS_ONLY;
    if (what == PURPOSE_ASKS_ONLY) return true;
    bool const by_image = what == PURPOSE_OTHER && place->arguments &&
                          serves(oos_engine_words_of_image(place->image)) && words->count &&
                          has_model(words) && !is_wrapper(words->list[0]) && !strchr(words->list[0], ' ') &&
                          strcmp(oos_base_name(words->list[0]), "sh") != 0 &&
                          strcmp(oos_base_name(words->list[0]), "bash") != 0;
    if (what == PURPOSE_OTHER && !by_image) {
        bool other = false;
        const char *title = words->count ? start_inside(words, &other) : NULL;
        if (other) finder->other = title;
        if (other)
            oos_finder_skip(finder, words->lines[0],
                            "%s is not planned here; its log can be explained: %.60s", title,
                            program_of(words));
        else if (title)
            oos_finder_skip(finder, words->lines[0], "a command that names %s was not understood: %.60s",
                            title, program_of(words));
        return title != NULL;
    }
    uint32_t const line = words->lines[by_image ? 0 : entry];
    oos_word_list whole = {0};
    const oos_word_list *environment = place->environment;
    if (!oos_finder_spend(finder, line, 32 * (words->count + (environment ? environment->count : 0))))
        return true;
    for (size_t i = 0; environment && i < environment->count; i++)
        oos_words_add(finder->arena, &whole, environment->list[i], environment->lines[i]);
    if (by_image) oos_words_add(finder->arena, &whole, place->image, words->lines[0]);
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->list[i], "--") != 0 || i > entry)
            oos_words_add(finder->arena, &whole, words->list[i], words->lines[i]);
    if (whole.full || words->full || (environment && environment->full)) {
        oos_finder_skip(finder, line, "a command of more than 1,024 words was not looked at");
        return true;
    }
    const char *image = place->image;
    for (size_t i = 0; i < words->count && !image; i++)
        if (oos_engine_words_of_image(words->list[i])) image = words->list[i];
    const char *other = place->other ? place->other : oos_image_other(place->image);
    return oos_finder_keep(finder, &whole,
                           (oos_found){.line = line,
                                       .kind = finder->kind,
                                       .name = place->name,
                                       .gpus = place->gpus,
                                       .slice = place->slice,
                                       .seen = oos_devices_seen(finder->arena, whole.list, whole.count,
                                                                place->devices, place->gpus),
                                       .other = other,
                                       .shares = place->shares,
                                       .host_limit_bytes = place->host_limit_bytes,
                                       .engine_version = oos_image_version(finder->arena, image),
                                       .unknown = finder->unknown});
}

static bool names_engine(const char *image)
{
    for (size_t i = 0; image && i < OOS_ENGINE_COUNT; i++)
        if (strstr(image, oos_engine_list[i]->name)) return true;
    return false;
}

void oos_finder_container(oos_finder *finder, const oos_word_list *words, const oos_place *place,
                          uint32_t line, size_t before)
{
    const oos_engine_words *engine = oos_engine_words_of_image(place->image);
    const char *other = engine ? NULL : oos_engine_other(place->image);
    const char *name = place->name ? place->name : "without a name";
    if (words && words->count && !engine && !other) other = oos_engine_other(oos_base_name(words->list[0]));
    if (finder->count + finder->skip_count > before) return;
    const char *device = place->other                 ? place->other
                         : names_engine(place->image) ? oos_image_other(place->image)
                                                      : NULL;
    if (other) finder->other = other;
    finder->foreign |= device != NULL;
    if (device)
        oos_finder_skip(finder, line, "container %s is for %s, and only NVIDIA GPUs are planned", name,
                        device);
    else if (engine)
        oos_finder_skip(finder, line, "container %s runs %s's image, and its command was not understood",
                        name, engine->title);
    else if (other)
        oos_finder_skip(finder, line, "container %s runs %s, which is not planned here", name, other);
    else if (place->gpus || place->slice || place->devices)
        oos_finder_skip(finder, line, "container %s asks for a GPU, and what it runs is not known here",
                        name);
}

/* ---- what comments declare ------------------------------------------------------------------------------------- */

typedef struct directive {
    uint32_t line;
    const char *gpu, *gpu_total, *release;
    bool ignore;
} directive;

static void directive_read(oos_arena *arena, oos_view words, directive *ret)
{
    static const struct {
        const char *key;
        size_t offset;
    } keys[] = {{"gpu=", offsetof(directive, gpu)}, {"gpu-total=", offsetof(directive, gpu_total)}};
    size_t const name = strlen(oos_engine_default->name);
    for (size_t at = 0; at < words.len;) {
        size_t len = 0;
        while (at + len < words.len && !oos_is_space(words.ptr[at + len])) len++;
        oos_view const word = {words.ptr + at, len};
        if (oos_view_is(word, "ignore")) ret->ignore = true;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (oos_view_starts(word, keys[k].key))
                *(const char **)((char *)ret + keys[k].offset) =
                    oos_arena_copy(arena, oos_view_slice(word, strlen(keys[k].key), len));
        if (oos_view_starts(word, oos_engine_default->name) && len > name && word.ptr[name] == '=')
            ret->release = oos_arena_copy(arena, oos_view_slice(word, name + 1, len));
        at += len + 1;
    }
}

/* `# oomsight: gpu=A30x4 vllm=0.19.1` holds for what follows; `# oomsight: ignore` for the next command. Each directive has
 * what those before it said, too. */
static size_t directives_read(oos_arena *arena, oos_view bytes, directive *list)
{
    static const char mark[] = "# oomsight:";
    size_t count = 0;
    uint32_t line = 1;
    for (size_t at = 0; at < bytes.len;) {
        const char *found = memmem(bytes.ptr + at, bytes.len - at, mark, sizeof mark - 1);
        if (!found) break;
        size_t const from = (size_t)(found - bytes.ptr);
        for (size_t i = at; i < from; i++) line += bytes.ptr[i] == '\n';
        const char *end = memchr(found, '\n', bytes.len - from);
        size_t const stop = end ? (size_t)(end - bytes.ptr) : bytes.len;
        if (list) {
            if (count) list[count] = list[count - 1];
            list[count].line = line;
            list[count].ignore = false;
            directive_read(arena,
                           oos_view_slice(bytes, from + sizeof mark - 1, stop - from - sizeof mark + 1),
                           &list[count]);
        }
        count++;
        at = stop;
    }
    return count;
}

/* How many of them stand on this line or before it. */
static size_t directives_before(const directive *list, size_t count, uint32_t line)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (list[middle].line <= line)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int by_line(const void *a, const void *b)
{
    uint32_t const one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

/* The first command or gap at or behind each `ignore`: its line, in order. */
static size_t ignored_lines(oos_finder *finder, const directive *list, size_t count, uint32_t *ret_lines)
{
    size_t const all = finder->count + finder->skip_count;
    uint32_t *lines = OOS_NEW_ARRAY(finder->arena, uint32_t, all);
    size_t ignored = 0, at = 0;
    if (!lines) {
        finder->failed = true;
        return 0;
    }
    for (size_t i = 0; i < finder->count; i++) lines[i] = finder->list[i].line;
    for (size_t i = 0; i < finder->skip_count; i++) lines[finder->count + i] = finder->skips[i].line;
    qsort(lines, all, sizeof *lines, by_line);
    for (size_t k = 0; k < count; k++) {
        if (!list[k].ignore) continue;
        while (at < all && lines[at] < list[k].line) at++;
        if (at < all) ret_lines[ignored++] = lines[at];
    }
    return ignored;
}

static void leave_out(oos_finder *finder, uint32_t line, const char *why)
{
    size_t const at = finder->skip_count;
    oos_finder_skip(finder, line, "%s", why);
    if (finder->skip_count > at) finder->skips[at].left_out = true;
}

static void directives_apply(oos_finder *finder, const directive *list, size_t count)
{
    uint32_t *ignored = count ? OOS_NEW_ARRAY(finder->arena, uint32_t, count) : NULL;
    size_t kept = 0;
    if (!count) return;
    size_t const ignored_count = ignored ? ignored_lines(finder, list, count, ignored) : 0;
    if (!ignored) finder->failed = true;
    for (size_t i = 0; i < finder->skip_count && ignored_count; i++)
        if (!finder->skips[i].broken &&
            bsearch(&finder->skips[i].line, ignored, ignored_count, sizeof *ignored, by_line))
            finder->skips[i].left_out = true;
    for (size_t i = 0; i < finder->count; i++) {
        oos_found *found = &finder->list[i];
        size_t const before = directives_before(list, count, found->line);
        const directive *last = before ? &list[before - 1] : NULL;
        if (last && last->gpu) found->gpu = last->gpu;
        if (last && last->gpu_total) found->gpu_total = last->gpu_total;
        if (last && last->release) found->engine_version = last->release;
        if (!ignored_count || !bsearch(&found->line, ignored, ignored_count, sizeof *ignored, by_line))
            finder->list[kept++] = *found;
        else
            leave_out(finder, found->line, "a command was left out by '# oomsight: ignore'");
    }
    finder->count = kept;
}

/* ---- what the file is ------------------------------------------------------------------------------------------ */

typedef void reader(oos_finder *finder, oos_view text);

static void read_script(oos_finder *finder, oos_view text)
{
    oos_finder_shell(finder, text, 1, 0, NULL);
}

static bool name_ends(const char *name, const char *tail)
{
    size_t const len = strlen(name), tail_len = strlen(tail);
    return len >= tail_len && oos_same(name + len - tail_len, tail);
}

/* The first line that says something, for files whose name does not. */
static oos_view first_line(oos_view bytes)
{
    size_t at = 0;
    while (at < bytes.len && oos_is_space(bytes.ptr[at])) at++;
    oos_view const rest = oos_view_slice(bytes, at, bytes.len);
    const char *end = rest.len ? memchr(rest.ptr, '\n', rest.len) : NULL;
    return oos_view_slice(rest, 0, end ? (size_t)(end - rest.ptr) : rest.len);
}

/* What a text without a name is, by how it begins. */
static reader *reader_by_text(oos_view first, const char **ret_kind)
{
    size_t key = 0;
    while (key < first.len && (oos_is_alnum(first.ptr[key]) || strchr("_-./\"", first.ptr[key]))) key++;
    bool const mapping = key && key < first.len && first.ptr[key] == ':' &&
                         (key + 1 == first.len || oos_is_space(first.ptr[key + 1]));
    *ret_kind = "Dockerfile";
    if (oos_view_starts(first, "FROM ") || oos_view_starts(first, "ARG ")) return oos_finder_dockerfile;
    *ret_kind = "container";
    if (mapping || oos_view_starts(first, "---") || oos_view_starts(first, "{") ||
        oos_view_starts(first, "- ") || oos_view_starts(first, "# Source:") ||
        oos_view_starts(first, "%YAML"))
        return oos_finder_yaml;
    *ret_kind = "shell script";
    return read_script;
}

/* JSON that deploys something is YAML as well. */
static bool is_manifest(oos_view bytes)
{
    return bytes.len && (memmem(bytes.ptr, bytes.len, "\"apiVersion\"", 12) ||
                         memmem(bytes.ptr, bytes.len, "\"containers\"", 12) ||
                         memmem(bytes.ptr, bytes.len, "\"image\"", 7));
}

static reader *reader_for(const char *path, oos_view bytes, const char **ret_kind)
{
    const char *name = oos_base_name(path);
    oos_view const first = first_line(bytes);
    bool const script = oos_view_starts(first, "#!") && memmem(first.ptr, first.len, "sh", 2);
    *ret_kind = "Dockerfile";
    if (oos_same_start(name, "Dockerfile", 10) || oos_same_start(name, "Containerfile", 13) ||
        name_ends(name, ".dockerfile"))
        return oos_finder_dockerfile;
    *ret_kind = "systemd unit";
    if (name_ends(name, ".service") || oos_view_is(first, "[Unit]")) return oos_finder_unit;
    *ret_kind = "kustomization";
    if (oos_same(name, "kustomization.yaml") || oos_same(name, "kustomization.yml") ||
        oos_same(name, "Kustomization"))
        return oos_finder_kustomization;
    *ret_kind = "container";
    if (name_ends(name, ".yaml") || name_ends(name, ".yml") ||
        (name_ends(name, ".json") && is_manifest(bytes)))
        return oos_finder_yaml;
    *ret_kind = "HCL";
    if (name_ends(name, ".tf") || name_ends(name, ".hcl") || name_ends(name, ".nomad")) return oos_finder_hcl;
    *ret_kind = "shell script";
    if (name_ends(name, ".sh") || name_ends(name, ".bash") || name_ends(name, ".zsh") || script)
        return read_script;
    return strcmp(path, "-") == 0 ? reader_by_text(oos_pasted_first(bytes), ret_kind) : NULL;
}

/* The engine that is named first outside of a comment, and its line; NULL: none is. */
static const char *mention(oos_view bytes, uint32_t *ret_line)
{
    static const char *const words[] = {"ray.serve.llm", "tensor_parallel_size", "tensor-parallel-size",
                                        "max_model_len", "max-model-len"};
    uint32_t line = 1;
    for (size_t at = 0; at < bytes.len; line++) {
        const char *end = memchr(bytes.ptr + at, '\n', bytes.len - at);
        oos_view const text = {bytes.ptr + at, end ? (size_t)(end - bytes.ptr) - at : bytes.len - at};
        size_t first = 0;
        while (first < text.len && oos_is_space(text.ptr[first])) first++;
        bool const comment =
            first < text.len && (text.ptr[first] == '#' || text.ptr[first] == ';' ||
                                 (first + 1 < text.len && memcmp(text.ptr + first, "//", 2) == 0));
        *ret_line = line;
        for (size_t i = 0; !comment && i < OOS_ENGINE_COUNT; i++)
            if (memmem(text.ptr, text.len, oos_engine_list[i]->name, strlen(oos_engine_list[i]->name)))
                return oos_engine_list[i]->title;
        for (size_t i = 0; !comment && i < sizeof words / sizeof *words; i++)
            if (memmem(text.ptr, text.len, words[i], strlen(words[i]))) return "settings of an engine";
        at += text.len + 1;
    }
    *ret_line = 0;
    return NULL;
}

/* Prose may speak of the engine as it likes. */
static bool is_prose(const char *path)
{
    static const char *const tails[] = {".md",  ".rst",  ".txt", ".html", ".log", ".json",
                                        ".csv", ".lock", ".c",   ".h",    NULL};
    for (size_t i = 0; tails[i]; i++)
        if (name_ends(path, tails[i])) return true;
    return false;
}

static bool is_ignored(const directive *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].ignore) return true;
    return false;
}

/* What the whole file says of the place of its commands. */
static void file_hints(oos_finder *finder, oos_view bytes)
{
    bool sure = false;
    const char *hint = oos_finder_gpu(finder->arena, bytes, &sure);
    const char *machine = oos_finder_machine(finder->arena, bytes),
               *release = oos_finder_release(finder->arena, bytes);
    uint64_t const job_gpus = oos_finder_slurm(bytes);
    for (size_t i = 0; i < finder->count; i++) {
        oos_found *found = &finder->list[i];
        if (!found->gpu_hint && !finder->by_document) {
            found->gpu_hint = hint;
            found->gpu_is_sure = sure;
        }
        if (!found->machine && !finder->by_document) found->machine = machine;
        if (!found->engine_version) found->engine_version = release;
        if (!found->gpus) found->gpus = job_gpus;
    }
}

static const char kind_model[] = "model";

bool oos_found_is_model(const oos_found *found)
{
    return found->kind == kind_model;
}

/* The name of a model, and flags: a plan takes it for the command that serves it. */
static void read_model(oos_finder *finder, oos_view text)
{
    oos_word_list words = {0};
    oos_finder_split(finder, text, 1, &words);
    if (words.count) oos_finder_keep(finder, &words, (oos_found){.line = words.lines[0], .kind = kind_model});
}

/* A text without a name that a shell makes nothing of may be a program, or a part of one. */
static void read_anything(oos_finder *finder, oos_view text)
{
    size_t const skips = finder->skip_count;
    finder->kind = "text";
    oos_finder_anywhere(finder, text);
    if (!finder->count || !skips) return;
    memmove(finder->skips, finder->skips + skips, (finder->skip_count - skips) * sizeof *finder->skips);
    finder->skip_count -= skips; /* what the shell did not understand */
}

/* What a script without a command takes in. */
static bool sourced_tell(oos_finder *finder, oos_found_doubt *ret_doubt)
{
    oos_found_skip *list = OOS_NEW_ARRAY(finder->arena, oos_found_skip, finder->sourced.count + 1);
    if (!list) return false;
    for (size_t i = 0; i < finder->sourced.count; i++)
        list[i] = (oos_found_skip){.line = finder->sourced.lines[i], .what = finder->sourced.list[i]};
    ret_doubt->sourced = list;
    ret_doubt->sourced_count = finder->sourced.count;
    return true;
}

oomsight_status oos_found_read(oos_arena *arena, const char *path, oos_view bytes, const oos_found **ret_list,
                               size_t *ret_count, oos_found_doubt *ret_doubt, oomsight_error *reterr)
{
    oos_finder finder = {.arena = arena, .path = path};
    *ret_list = NULL;
    *ret_count = 0;
    *ret_doubt = (oos_found_doubt){0};
    bool const pasted = finder.pasted = strcmp(path, "-") == 0;
    if (pasted && !oos_pasted_clean(arena, bytes, &bytes))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read the text");
    reader *read = pasted && oos_pasted_model(bytes) ? read_model : reader_for(path, bytes, &finder.kind);
    uint32_t named_line = 0;
    const char *named = is_prose(path) && !read ? NULL : mention(bytes, &named_line);
    if (memchr(bytes.ptr ? bytes.ptr : "", '\0', bytes.len)) { /* no text: only a name can make it matter */
        if (read) oos_finder_skip(&finder, 1, "it holds a byte 0 and was not looked at");
        ret_doubt->skips = finder.skips;
        ret_doubt->skip_count = finder.skip_count;
        return finder.failed ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read %s", path) : OOMSIGHT_OK;
    }
    finder.most_bytes = UNFOLDED_MAX + 4 * (uint64_t)bytes.len;
    finder.variables = OOS_NEW_ARRAY(arena, oos_variable, OOS_FOUND_VARIABLES_MAX);
    size_t const directive_count = directives_read(arena, bytes, NULL);
    directive *directives = OOS_NEW_ARRAY(arena, directive, directive_count + 1);
    if (!finder.variables || !directives)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read %s", path);
    (void)directives_read(arena, bytes, directives);
    if (read) read(&finder, bytes);
    if (finder.count == 0 && named && !finder.stopped && !finder.foreign &&
        (!read || read == oos_finder_yaml || read == oos_finder_hcl)) {
        finder.kind = "text";
        oos_finder_anywhere(&finder, bytes);
    }
    if (pasted && finder.count == 0 && !finder.stopped && !finder.asks) read_anything(&finder, bytes);
    if (finder.count) file_hints(&finder, bytes);
    bool const nothing = finder.count == 0 && finder.skip_count == 0 && !finder.asks;
    directives_apply(&finder, directives, directive_count);
    if (nothing && named && is_ignored(directives, directive_count))
        leave_out(&finder, named_line, "what names an engine was left out by '# oomsight: ignore'");
    else if (nothing)
        ret_doubt->mentions = named;
    if (nothing && !sourced_tell(&finder, ret_doubt)) finder.failed = true;
    if (finder.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read %s", path);
    ret_doubt->other = finder.other;
    ret_doubt->skips = finder.skips;
    ret_doubt->skip_count = finder.skip_count;
    ret_doubt->named = finder.named.list;
    ret_doubt->named_count = finder.named.count;
    ret_doubt->line = named_line;
    *ret_list = finder.list;
    *ret_count = finder.count;
    return OOMSIGHT_OK;
}
