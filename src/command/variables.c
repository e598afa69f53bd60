/* The variables of a command that may be shown, and the command with them. */
#include "command/command.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/secret.h"
#include "base/shown.h"
#include "facts/facts.h"

#include <string.h>

static size_t name_len(const char *word)
{
    size_t len = 0;
    while (oos_is_alnum(word[len]) || word[len] == '_') len++;
    return oos_is_digit(word[0]) ? 0 : len;
}

static bool is_assignment(const char *word)
{
    size_t const len = name_len(word);
    return len && word[len] == '=';
}

/* Of an engine: they begin with its name. */
static bool is_of_an_engine(oos_view name)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        size_t const len = strlen(oos_engine_list[i]->name);
        if (name.len > len && name.ptr[len] == '_' && oos_same_start(name.ptr, oos_engine_list[i]->name, len))
            return true;
    }
    return false;
}

bool oos_variable_is_shown(const char *assignment)
{
    static const char *const beginnings[] = {
        "CUDA_",      "NVIDIA_",       "NCCL_",     "PYTORCH_",  "TORCH",        "TRITON_",
        "CUBLAS",     "CUDNN_",        "NVTE_",     "NVSHMEM_",  "UCX_",         "FLASHINFER_",
        "FLASH_ATTN", "OMP_",          "MKL_",      "RAY_",      "HF_HUB_",      "ROCM_",
        "HIP_",       "HSA_",          "LMCACHE_",  "MOONCAKE_", "NIXL_",        "DG_",
        "DEEPEP_",    "DEEP_GEMM",     "GLOO_",     "SGL_",      "TOKENIZERS_",  "MALLOC_",
        "PYTHON",     "TRANSFORMERS_", "OOMSIGHT_", "LD_",       "SAFETENSORS_", NULL};
    static const char *const names[] = {
        "HF_HOME", "HF_ENDPOINT", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME",     "LOCAL_RANK",
        "PATH",    "HOME",        "GPU_MAX_HW_QUEUES",     "NV_ALLOW_RAISE_VDD", NULL};
    oos_view const name = {assignment, name_len(assignment)};
    if (oos_secret_name(name)) return false;
    if (is_of_an_engine(name)) return true;
    for (size_t i = 0; beginnings[i]; i++)
        if (oos_view_starts(name, beginnings[i])) return true;
    for (size_t i = 0; names[i]; i++)
        if (oos_view_is(name, names[i])) return true;
    return false;
}

/* ---- words ---- */

/* Words that may stand between variables and the command. */
static bool is_before(const char *word)
{
    return strcmp(word, "env") == 0 || strcmp(word, "export") == 0 || strcmp(word, "exec") == 0 ||
           strcmp(word, "sudo") == 0 || strcmp(word, "nohup") == 0;
}

static bool has_command(const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_assignment(words[i])) return true;
    return false; /* model=x tensor_parallel_size=4 */
}

/* `--env=NAME=value`, `-eNAME=value`: where the name begins; NULL: it is something else. */
static const char *handed_in(const char *word)
{
    bool const glued = strncmp(word, "-e", 2) == 0 && word[2] >= 'A' && word[2] <= 'Z';
    const char *name = strncmp(word, "--env=", 6) == 0 ? word + 6 : glued ? word + 2 : NULL;
    return name && is_assignment(name) ? name : NULL;
}

/* The words with variables as they may be seen. `secrets`: those before the command stay when they hold one. */
static const char **words_keep(oos_arena *arena, const char *const *words, size_t count, bool secrets,
                               size_t *ret_count)
{
    const char **kept = OOS_NEW_ARRAY(arena, const char *, count + 1);
    bool before = has_command(words, count);
    size_t at = 0;
    for (size_t i = 0; kept && i < count; i++) {
        const char *word = words[i], *inside = handed_in(word);
        bool const handed = i > 0 &&
                            (strcmp(words[i - 1], "-e") == 0 || strcmp(words[i - 1], "--env") == 0) &&
                            is_assignment(word),
                   assigned = is_assignment(word);
        if ((handed || inside) && !oos_variable_is_shown(inside ? inside : word)) {
            const char *name = inside ? inside : word;
            word = oos_arena_copy(arena, (oos_view){word, (size_t)(name - word) + name_len(name)});
            if (!word) return NULL;
        } else if (before && assigned && !handed && !oos_variable_is_shown(word) &&
                   !(secrets && oos_secret_name((oos_view){word, name_len(word)})))
            continue;
        before &= assigned || is_before(word);
        kept[at++] = word;
    }
    oos_assert(at <= count);
    *ret_count = at;
    return kept;
}

const char *const *oos_command_shown(oos_arena *arena, const char *const *words, size_t count,
                                     size_t *ret_count)
{
    const char **kept = words_keep(arena, words, count, false, ret_count);
    return kept ? oos_secret_hidden_words(arena, kept, *ret_count) : NULL;
}

/* ---- to be pasted ---- */

/* `--api-key` -> "$API_KEY". Whatever the name holds, a shell takes this for one variable. */
static void put_reference(oos_text *text, oos_view name)
{
    size_t from = 0;
    while (from < name.len && !oos_is_alpha(name.ptr[from])) from++;
    oos_text_put(text, from < name.len ? "\"$" : "\"$SECRET");
    for (size_t i = from; i < name.len; i++) {
        char const c = name.ptr[i];
        bool const small = c >= 'a' && c <= 'z';
        oos_text_add(text, (oos_view){(const char[]){small ? (char)(c - 32) : oos_is_alnum(c) ? c : '_'}, 1});
    }
    oos_text_put(text, "\"");
}

/* `NAME=` or `--flag=`, which need no quotation: how long. */
static size_t plain_start(const char *word)
{
    size_t len = 0;
    while (oos_is_alnum(word[len]) || word[len] == '_' || word[len] == '-') len++;
    return len && word[len] == '=' ? len + 1 : 0;
}

/* A shell would take `'NAME=a b'` for a program. */
static void put_word(oos_text *text, const char *word)
{
    size_t const start = is_assignment(word) ? name_len(word) + 1 : 0;
    oos_text_add(text, (oos_view){word, start});
    if (word[start] || !start) oos_serve_quote(text, word + start);
}

/* `flag`: the one before it. */
static void put_hidden(oos_text *text, const char *word, const char *flag)
{
    size_t const start = plain_start(word);
    oos_text_add(text, (oos_view){word, start});
    put_reference(text, start ? (oos_view){word, start - 1} : oos_view_of(flag));
}

/* What stands behind it is not taken for its value either. */
static bool stands_alone(const char *word)
{
    return oos_serve_is_plain(word) && !strchr("=:", word[strlen(word) - 1]);
}

/* `plain`: words that need quotation are taken from variables, too. */
static void put_words(oos_text *text, const char *const *words, const char *const *shown, size_t count,
                      bool plain)
{
    const char *flag = "";
    bool given = false; /* the flag has its reference */
    for (size_t i = 0; i < count; i++) {
        bool const masked = strcmp(shown[i], "***") == 0;
        if (masked && given) continue;
        if (text->len) oos_text_put(text, " ");
        size_t const start = plain_start(shown[i]);
        bool const hidden = shown[i] != words[i] || (start && strcmp(shown[i] + start, "***") == 0);
        if (masked)
            put_reference(text, oos_view_of(flag));
        else if (hidden || (plain && !stands_alone(shown[i])))
            put_hidden(text, shown[i], flag);
        else
            put_word(text, shown[i]);
        given = masked;
        if (shown[i][0] == '-') flag = shown[i], given = false;
    }
}

/* A writer that finds a secret in the whole line would hide it with quotation marks and all, and what they held would be words of
 * the shell. In such a line no word needs quotation. */
void oos_command_put(oos_arena *arena, oos_text *text, const char *const *words, size_t count)
{
    size_t kept_count = 0;
    const char **kept = words_keep(arena, words, count, true, &kept_count);
    const char *const *shown = kept ? oos_secret_hidden_words(arena, kept, kept_count) : NULL;
    text->failed |= !shown;
    for (unsigned plain = 0; shown && plain < 2; plain++) {
        oos_text line = {0}, escaped = {0};
        put_words(&line, kept, shown, kept_count, plain);
        oos_shown_escape(&escaped, (oos_view){line.ptr, line.len}, false);
        bool const enough = plain || !oos_secret_inside((oos_view){escaped.ptr, escaped.len});
        if (enough) oos_text_add(text, (oos_view){escaped.ptr, escaped.len});
        text->failed |= line.failed || escaped.failed;
        oos_text_free(&line);
        oos_text_free(&escaped);
        if (enough) break;
    }
}
