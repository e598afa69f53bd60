/* What the frames of a stack point to: names people know, from words in function and file names. */
#include "replay/replay.h"

/* A category that the ledger knows is called as it is there. */
static const struct {
    const char *word;
    oos_owner owner;
    const char *category; /* NULL: the owner's word */
} words[] = {{"kv_cache", OOS_OWNER_KV_CACHE, NULL},       {"kvcache", OOS_OWNER_KV_CACHE, NULL},
             {"capture", OOS_OWNER_CUDA_GRAPHS, NULL},     {"cudagraph", OOS_OWNER_CUDA_GRAPHS, NULL},
             {"cuda_graph", OOS_OWNER_CUDA_GRAPHS, NULL},  {"load_weights", OOS_OWNER_WEIGHTS, NULL},
             {"weight_loader", OOS_OWNER_WEIGHTS, NULL},   {"create_weights", OOS_OWNER_WEIGHTS, NULL},
             {"process_weights", OOS_OWNER_WEIGHTS, NULL}, {"load_model", OOS_OWNER_WEIGHTS, NULL},
             {"optimizer", OOS_OWNER_LIVE, "optimizer"},   {"optim/", OOS_OWNER_LIVE, "optimizer"},
             {"backward", OOS_OWNER_LIVE, "gradients"},    {"sampler", OOS_OWNER_SAMPLER, NULL},
             {"forward", OOS_OWNER_ACTIVATIONS, NULL},     {"execute_model", OOS_OWNER_ACTIVATIONS, NULL},
             {"profile_run", OOS_OWNER_ACTIVATIONS, NULL}, {"_dummy_run", OOS_OWNER_ACTIVATIONS, NULL}};
enum { WORDS = sizeof words / sizeof *words };

static size_t word_of(const oos_trace *trace, uint32_t stack)
{
    for (uint32_t at = stack; at && at < trace->stack_count; at = trace->stacks[at].caller) {
        const oos_frame *f = &trace->frames[trace->stacks[at].frame];
        for (size_t i = 0; i < WORDS; i++)
            if (strstr(trace->strings[f->name], words[i].word) ||
                strstr(trace->strings[f->file], words[i].word))
                return i;
    }
    return WORDS;
}

oos_owner oos_owner_of(const oos_trace *trace, uint32_t stack)
{
    size_t const word = word_of(trace, stack);
    return word < WORDS ? words[word].owner : OOS_OWNER_LIVE;
}

const char *oos_category_of(const oos_trace *trace, uint32_t stack, oos_pool_id pool)
{
    size_t const word = word_of(trace, stack);
    if (word < WORDS) return words[word].category ? words[word].category : oos_owner_word(words[word].owner);
    if (pool.first || pool.second) return pool.first ? "graph pools" : "memory pools";
    return stack ? "other code" : "not known (no stacks recorded)";
}

static bool ends_with(const char *text, const char *end)
{
    size_t const len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* Frames of torch and of compiled code say little about who asked. */
static bool is_torch_own(const char *file)
{
    static const char *const compiled[] = {".c", ".cpp", ".cc", ".h", ".hpp", ".cu", ".S"};
    for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++)
        if (ends_with(file, compiled[i])) return true;
    return !*file || strncmp(file, "??", 2) == 0 || strstr(file, "/torch/") ||
           strncmp(file, "torch/", 6) == 0;
}

const char *oos_stack_name(oos_arena *arena, const oos_trace *trace, uint32_t stack)
{
    if (!stack || stack >= trace->stack_count) return "(no stack recorded)";
    uint32_t chosen = stack;
    for (uint32_t at = stack; at; at = trace->stacks[at].caller)
        if (!is_torch_own(trace->strings[trace->frames[trace->stacks[at].frame].file])) {
            chosen = at;
            break;
        }
    const oos_frame *f = &trace->frames[trace->stacks[chosen].frame];
    if (!trace->strings[f->file][0]) return trace->strings[f->name];
    return oos_arena_format(arena, "%s (%s:%u)", trace->strings[f->name], trace->strings[f->file], f->line);
}
