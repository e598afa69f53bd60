/* What the frames of a stack point to: names people know, from words in function and file names. */
#include "replay/analysis.h"

static const struct {
    const char *word, *category;
} words[] = {{"kv_cache", "KV cache"},         {"kvcache", "KV cache"},        {"capture", "CUDA graphs"},
             {"cudagraph", "CUDA graphs"},     {"cuda_graph", "CUDA graphs"},  {"load_weights", "weights"},
             {"weight_loader", "weights"},     {"create_weights", "weights"},  {"process_weights", "weights"},
             {"load_model", "weights"},        {"optimizer", "optimizer"},     {"optim/", "optimizer"},
             {"backward", "gradients"},        {"sampler", "sampler"},         {"forward", "activations"},
             {"execute_model", "activations"}, {"profile_run", "activations"}, {"_dummy_run", "activations"}};

const char *oos_category_of(const oos_trace *trace, uint32_t stack, oos_pool_id pool)
{
    for (uint32_t at = stack; at && at < trace->stack_count; at = trace->stacks[at].caller) {
        const oos_frame *f = &trace->frames[trace->stacks[at].frame];
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strstr(trace->strings[f->name], words[i].word) ||
                strstr(trace->strings[f->file], words[i].word))
                return words[i].category;
    }
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
