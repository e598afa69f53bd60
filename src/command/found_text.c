/* Commands in files whose kind nobody knows here: a Makefile, a task of a scheduler, a program. What stands there word for word is
 * taken as a shell would take it. And the device, by the words that cluster files name it with. */
#include "base/ascii.h"
#include "command/found_parts.h"

#include <stdlib.h>

static uint32_t line_of(oos_view text, size_t at)
{
    uint32_t line = 1;
    for (size_t i = 0; i < at; i++) line += text.ptr[i] == '\n';
    return line;
}

static bool in_comment(oos_view text, size_t at)
{
    while (at > 0 && text.ptr[at - 1] != '\n') at--;
    while (at < text.len && (text.ptr[at] == ' ' || text.ptr[at] == '\t')) at++;
    return at < text.len && (text.ptr[at] == '#' || text.ptr[at] == ';');
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

/* `vllm serve ...` and `python -m vllm.entrypoints...` as text. */
static void take_text(oos_finder *finder, oos_view text, const char *mark)
{
    size_t const len = strlen(mark);
    for (size_t at = 0; at + len < text.len;) {
        const char *found = memmem(text.ptr + at, text.len - at, mark, len);
        if (!found) return;
        size_t from = (size_t)(found - text.ptr);
        at = from + len;
        if (in_comment(text, from) || !begins(text, from)) continue;
        char const before = from ? text.ptr[from - 1] : '\n';
        char const quote = before == '"' || before == '\'' ? before : 0;
        size_t const end = command_end(text, at, quote);
        size_t model = at;
        while (model < end && oos_is_space(text.ptr[model])) model++;
        if (model == end) continue; /* it is only spoken of */
        oos_finder_shell(finder, oos_view_slice(text, from, end - from), line_of(text, from), 0, NULL);
        at = end;
    }
}

/* "vllm", "serve", "org/model", ...: the quoted words up to the bracket. */
static void take_list(oos_finder *finder, oos_view text)
{
    static const char *const marks[] = {"\"vllm\"", "'vllm'", "\"vllm.entrypoints", "\"--model\""};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
        const char *found = memmem(text.ptr ? text.ptr : "", text.len, marks[k], strlen(marks[k]));
        if (!found) continue;
        size_t at = (size_t)(found - text.ptr);
        uint32_t const line = line_of(text, at);
        oos_words words = {0};
        if (k >= 2)
            oos_words_add(finder->arena, &words, "python", line),
                oos_words_add(finder->arena, &words, "-m", line);
        if (k == 3) oos_words_add(finder->arena, &words, "vllm.entrypoints.openai.api_server", line);
        while (at < text.len && text.ptr[at] != ']' && words.count < OOS_WORDS_MAX) {
            char const quote = text.ptr[at];
            if (quote != '"' && quote != '\'') {
                at++;
                continue;
            }
            const char *close = memchr(text.ptr + at + 1, quote, text.len - at - 1);
            if (!close) break;
            size_t const end = (size_t)(close - text.ptr);
            oos_words_add(finder->arena, &words,
                          oos_arena_copy(finder->arena, oos_view_slice(text, at + 1, end - at - 1)), line);
            at = end + 1;
        }
        oos_finder_offer(finder, &words, NULL);
        return;
    }
}

/* LLM(model="...", ...): balanced brackets, as one word. */
static void take_python(oos_finder *finder, oos_view text)
{
    for (size_t at = 0; at + 4 < text.len;) {
        const char *found = memmem(text.ptr + at, text.len - at, "LLM(", 4);
        if (!found) return;
        size_t const from = (size_t)(found - text.ptr);
        size_t depth = 1, end = from + 4;
        at = end;
        if (from && (oos_is_alnum(text.ptr[from - 1]) || text.ptr[from - 1] == '_')) continue;
        for (; end < text.len && depth; end++)
            depth += (size_t)(text.ptr[end] == '(') - (size_t)(text.ptr[end] == ')');
        char *call = oos_arena_copy(finder->arena, oos_view_slice(text, from, end - from));
        if (!call || finder->count == OOS_FOUND_MAX) return;
        for (char *c = call; *c; c++)
            if (*c == '\n' || *c == '\t') *c = ' ';
        const char **words = OOS_NEW_ARRAY(finder->arena, const char *, 1);
        if (!words) return;
        words[0] = call;
        finder->list[finder->count++] = (oos_found){
            .words = words, .shown = words, .count = 1, .line = line_of(text, from), .kind = "Python"};
    }
}

void oos_finder_anywhere(oos_finder *finder, oos_view text)
{
    take_text(finder, text, "vllm serve ");
    if (finder->count == 0) take_text(finder, text, "python -m vllm.entrypoints");
    if (finder->count == 0) take_text(finder, text, "python3 -m vllm.entrypoints");
    if (finder->count == 0) take_list(finder, text);
    if (finder->count == 0) take_python(finder, text);
}

/* ---- the device ----------------------------------------------------------------------------------------------------- */

/* Machines by the beginning of their type, and what is in them. */
static const struct {
    const char *type, *gpu;
} machines[] = {{"p6-b200", "B200"},
                {"p5en.", "H200"},
                {"p5e.", "H200"},
                {"p5.", "H100"},
                {"p4de.", "A100 80GB"},
                {"p4d.", "A100 40GB"},
                {"g6e.", "L40S"},
                {"g6.", "L4"},
                {"g5.", "A10G"},
                {"g4dn.", "T4"},
                {"a3-ultragpu", "H200"},
                {"a3-", "H100"},
                {"a2-ultragpu", "A100 80GB"},
                {"a2-", "A100 40GB"},
                {"g2-standard", "L4"},
                {"Standard_ND96isr_H100", "H100"},
                {"Standard_NC24ads_A100", "A100 80GB"}};

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

static const char *machine_gpu(const char *type)
{
    for (size_t i = 0; type && i < sizeof machines / sizeof *machines; i++)
        if (strncmp(type, machines[i].type, strlen(machines[i].type)) == 0) return machines[i].gpu;
    return NULL;
}

const char *oos_finder_gpu(oos_arena *arena, oos_view text)
{
    static const char *const selectors[] = {"nvidia.com/gpu.product",
                                            "cloud.google.com/gke-accelerator",
                                            "k8s.amazonaws.com/accelerator",
                                            "accelerators",
                                            "--gres=gpu",
                                            "--gpus-per-node"};
    static const char *const types[] = {"node.kubernetes.io/instance-type",
                                        "beta.kubernetes.io/instance-type", "instance_type", "instanceType"};
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        const char *value = value_behind(arena, text, selectors[i]);
        if (value && !oos_is_digit(*value)) return strncmp(value, "nvidia-", 7) == 0 ? value + 7 : value;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *gpu = machine_gpu(value_behind(arena, text, types[i]));
        if (gpu) return gpu;
    }
    return NULL;
}
