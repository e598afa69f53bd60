/* What kind of file it is, whether words start the engine, and what comments declare. Reading each kind is left to the
 * files beside this one. */
#include "command/found_parts.h"
#include "facts/engine.h"
#include "base/ascii.h"
#include "base/locale.h"
#include "base/secret.h"

#include <stdlib.h>

enum { FILE_MAX_BYTES = 4 << 20, DIRECTIVES_MAX = 64 };

bool oos_words_add(oos_arena *arena, oos_words *words, const char *word, uint32_t line)
{
    if (!words->list) {
        words->list = OOS_NEW_ARRAY(arena, const char *, OOS_WORDS_MAX);
        words->lines = OOS_NEW_ARRAY(arena, uint32_t, OOS_WORDS_MAX);
    }
    if (!words->list || !words->lines || !word || words->count == OOS_WORDS_MAX) return false;
    words->list[words->count] = word;
    words->lines[words->count++] = line;
    return true;
}

/* ---- does it start the engine? --------------------------------------------------------------------------------- */

static const char *base_name(const char *word)
{
    const char *slash = strrchr(word, '/');
    return slash ? slash + 1 : word;
}

static bool is_among(const char *word, const char *const *list)
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
        "exec",    "sudo",     "nohup",   "env",     "time",    "nice",     "ionice",  "stdbuf", "setsid",
        "numactl", "taskset",  "timeout", "uv",      "poetry",  "pixi",     "run",     "uvx",    "tini",
        "conda",   "oomsight", "plan",    "dryrun",  "then",    "do",       "else",    "if",     "dumb-init",
        "!",       "{",        "python",  "python3", "command", "nsys",     "profile", "chrt",   "while",
        "srun",    "mpirun",   "--",      "until",   "&&",      "torchrun", NULL};
    return is_among(base_name(word), names) || strncmp(base_name(word), "python3.", 8) == 0;
}

/* The image starts the server by itself. */
static bool serves(const oos_engine_words *engine)
{
    return engine && engine->image_serves;
}

/* The index of the word that names the engine, SIZE_MAX: these words do something else. */
static size_t entry_index(const oos_words *words)
{
    static const char *const containers[] = {"docker", "podman", "nerdctl", NULL};
    bool const container = words->count && is_among(base_name(words->list[0]), containers);
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->list[i], *next = i + 1 < words->count ? words->list[i + 1] : "";
        if (oos_engine_words_at(word, next)) return i;
        if (container) {
            if (serves(oos_engine_words_of_image(word)) && i > 0 && word[0] != '-') return i;
            continue; /* options of `docker run` may be anything */
        }
        bool const of_option = i > 0 && words->list[i - 1][0] == '-';
        if (!is_assignment(word) && !is_wrapper(word) && word[0] != '-' && !is_number(word) && !of_option)
            break;
    }
    return SIZE_MAX;
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
    return dots >= 1 && oos_is_digit(from[0]) ? oos_arena_copy(arena, (oos_view){from, len}) : NULL;
}

static bool has_model(const oos_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        if (strncmp(words->list[i], "--model", 7) == 0 &&
            (words->list[i][7] == '\0' || words->list[i][7] == '='))
            return true;
    return words->count && words->list[0][0] != '-';
}

void oos_finder_offer(oos_finder *finder, const oos_words *words, const oos_place *place)
{
    static const oos_place nowhere = {0};
    if (!place) place = &nowhere;
    size_t const entry = entry_index(words);
    bool const by_image =
        entry == SIZE_MAX && place->arguments && serves(oos_engine_words_of_image(place->image)) &&
        words->count && has_model(words) && !is_wrapper(words->list[0]) && !strchr(words->list[0], ' ') &&
        strcmp(base_name(words->list[0]), "sh") != 0 && strcmp(base_name(words->list[0]), "bash") != 0;
    if ((entry == SIZE_MAX && !by_image) || finder->count == OOS_FOUND_MAX) return;
    oos_words whole = {0};
    const oos_words *environment = place->environment;
    for (size_t i = 0; environment && i < environment->count; i++)
        oos_words_add(finder->arena, &whole, environment->list[i], environment->lines[i]);
    if (by_image) oos_words_add(finder->arena, &whole, place->image, words->lines[0]);
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->list[i], "--") != 0 || i > entry)
            oos_words_add(finder->arena, &whole, words->list[i], words->lines[i]);
    if (!whole.count) return;
    const char *const *shown = oos_secret_hidden_words(finder->arena, whole.list, whole.count);
    if (!shown) return;
    const char *image = place->image;
    for (size_t i = 0; i < words->count && !image; i++)
        if (oos_engine_words_of_image(words->list[i])) image = words->list[i];
    finder->list[finder->count++] = (oos_found){.words = whole.list,
                                                .shown = shown,
                                                .count = whole.count,
                                                .line = words->lines[by_image ? 0 : entry],
                                                .kind = finder->kind,
                                                .name = place->name,
                                                .gpus = place->gpus,
                                                .slice = place->slice,
                                                .engine_version = oos_image_version(finder->arena, image),
                                                .unknown = finder->unknown};
}

/* ---- what comments declare ------------------------------------------------------------------------------------- */

typedef struct directive {
    uint32_t line;
    const char *gpu, *gpu_total, *vllm;
    bool ignore;
} directive;

static void directive_read(oos_arena *arena, oos_view words, directive *ret)
{
    static const struct {
        const char *key;
        size_t offset;
    } keys[] = {{"gpu=", offsetof(directive, gpu)},
                {"gpu-total=", offsetof(directive, gpu_total)},
                {"vllm=", offsetof(directive, vllm)}};
    for (size_t at = 0; at < words.len;) {
        size_t len = 0;
        while (at + len < words.len && !oos_is_space(words.ptr[at + len])) len++;
        oos_view const word = {words.ptr + at, len};
        if (oos_view_is(word, "ignore")) ret->ignore = true;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (oos_view_starts(word, keys[k].key))
                *(const char **)((char *)ret + keys[k].offset) =
                    oos_arena_copy(arena, oos_view_slice(word, strlen(keys[k].key), len));
        at += len + 1;
    }
}

/* `# oomsight: gpu=A30x4 vllm=0.19.1` holds for what follows; `# oomsight: ignore` for the next command. */
static size_t directives_read(oos_arena *arena, oos_view bytes, directive *list)
{
    static const char mark[] = "# oomsight:";
    size_t count = 0;
    uint32_t line = 1;
    for (size_t at = 0; at < bytes.len && count < DIRECTIVES_MAX; line++) {
        const char *end = memchr(bytes.ptr + at, '\n', bytes.len - at);
        oos_view const text = {bytes.ptr + at, end ? (size_t)(end - bytes.ptr) - at : bytes.len - at};
        const char *found = memmem(text.ptr, text.len, mark, sizeof mark - 1);
        if (found) {
            size_t const from = (size_t)(found - text.ptr) + sizeof mark - 1;
            list[count] = (directive){.line = line};
            directive_read(arena, oos_view_slice(text, from, text.len), &list[count++]);
        }
        at += text.len + 1;
    }
    return count;
}

static void directives_apply(oos_finder *finder, const directive *list, size_t count)
{
    size_t kept = 0;
    uint32_t previous = 0;
    for (size_t i = 0; i < finder->count; i++) {
        oos_found *found = &finder->list[i];
        bool ignored = false;
        for (size_t k = 0; k < count && list[k].line <= found->line; k++) {
            if (list[k].gpu) found->gpu = list[k].gpu;
            if (list[k].gpu_total) found->gpu_total = list[k].gpu_total;
            if (list[k].vllm) found->engine_version = list[k].vllm;
            ignored |= list[k].ignore && list[k].line > previous;
        }
        previous = found->line;
        if (!ignored) finder->list[kept++] = *found;
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

static reader *reader_for(const char *path, oos_view bytes, const char **ret_kind)
{
    const char *name = base_name(path);
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
    if (name_ends(name, ".yaml") || name_ends(name, ".yml")) return oos_finder_yaml;
    *ret_kind = "HCL";
    if (name_ends(name, ".tf") || name_ends(name, ".hcl") || name_ends(name, ".nomad")) return oos_finder_hcl;
    *ret_kind = "shell script";
    if (name_ends(name, ".sh") || name_ends(name, ".bash") || name_ends(name, ".zsh") || script)
        return read_script;
    return NULL;
}

/* The line of the first word that names the engine outside of a comment, 0: none does. */
static uint32_t mention(oos_view bytes)
{
    static const char *const names[] = {
        "vllm",          "ray.serve.llm", "tensor_parallel_size", "tensor-parallel-size",
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
        for (size_t i = 0; !comment && i < sizeof names / sizeof *names; i++)
            if (memmem(text.ptr, text.len, names[i], strlen(names[i]))) return line;
        at += text.len + 1;
    }
    return 0;
}

/* Prose may speak of the engine as it likes. */
static bool is_prose(const char *path)
{
    static const char *const tails[] = {".md",   ".rst", ".txt",  ".html", ".log",
                                        ".json", ".csv", ".lock", NULL};
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

static oomsight_status found_read(oos_finder finder, const char *path, oos_view bytes,
                                  const oos_found **ret_list, size_t *ret_count, oos_found_doubt *ret_doubt,
                                  oomsight_error *reterr)
{
    oos_arena *arena = finder.arena;
    *ret_list = NULL;
    *ret_count = 0;
    *ret_doubt = (oos_found_doubt){0};
    reader *read = reader_for(path, bytes, &finder.kind);
    if (bytes.len > FILE_MAX_BYTES || memchr(bytes.ptr ? bytes.ptr : "", '\0', bytes.len)) return OOMSIGHT_OK;
    finder.list = OOS_NEW_ARRAY(arena, oos_found, OOS_FOUND_MAX);
    finder.variables = OOS_NEW_ARRAY(arena, oos_variable, OOS_VARIABLES_MAX);
    directive *directives = OOS_NEW_ARRAY(arena, directive, DIRECTIVES_MAX);
    if (!finder.list || !finder.variables || !directives)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read %s", path);
    size_t const directive_count = directives_read(arena, bytes, directives);
    uint32_t const named = is_prose(path) ? 0 : mention(bytes);
    if (read) read(&finder, bytes);
    if (finder.count == 0 && named && !finder.doubted &&
        (!read || read == oos_finder_yaml || read == oos_finder_kustomization || read == oos_finder_hcl)) {
        finder.kind = "text";
        oos_finder_anywhere(&finder, bytes);
    }
    if (finder.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read %s", path);
    ret_doubt->mentions =
        (named || finder.doubted) && finder.count == 0 && !is_ignored(directives, directive_count);
    ret_doubt->broken = finder.broken;
    ret_doubt->applied = finder.applied.list;
    ret_doubt->applied_count = finder.applied.count;
    ret_doubt->line = finder.broken ? finder.broken_line : finder.doubted ? finder.doubted : named;
    const char *hint = finder.count ? oos_finder_gpu(arena, bytes) : NULL;
    const char *machine = finder.count ? oos_finder_machine(arena, bytes) : NULL,
               *release = finder.count ? oos_finder_release(arena, bytes) : NULL;
    uint64_t const job_gpus = oos_finder_slurm(bytes);
    for (size_t i = 0; i < finder.count; i++) {
        oos_found *found = &finder.list[i];
        if (!found->gpu_hint && !finder.by_document) found->gpu_hint = hint;
        if (!found->machine && !finder.by_document) found->machine = machine;
        if (!found->engine_version) found->engine_version = release;
        if (!found->gpus) found->gpus = job_gpus;
    }
    directives_apply(&finder, directives, directive_count);
    *ret_list = finder.list;
    *ret_count = finder.count;
    return OOMSIGHT_OK;
}

oomsight_status oos_found_read(oos_arena *arena, const char *path, oos_view bytes, const oos_found **ret_list,
                               size_t *ret_count, oos_found_doubt *ret_doubt, oomsight_error *reterr)
{
    return found_read((oos_finder){.arena = arena}, path, bytes, ret_list, ret_count, ret_doubt, reterr);
}

oomsight_status oos_found_read_at(oos_arena *arena, const char *path, oos_view bytes,
                                  const oos_found **ret_list, size_t *ret_count, oos_found_doubt *ret_doubt,
                                  oomsight_error *reterr)
{
    return found_read((oos_finder){.arena = arena, .path = path}, path, bytes, ret_list, ret_count, ret_doubt,
                      reterr);
}
