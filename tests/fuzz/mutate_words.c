/* The words of a serve command, one a line: flags of the engine's own table with values that fit their kind, or do not. */
#include "mutate.h"

#include "facts/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const oos_flag_table *table(void)
{
    static oos_flag_table flags;
    static oos_arena *arena;
    if (!arena) {
        arena = oos_arena_create(1 << 16);
        if (!arena || oos_flags_load(arena, NULL, "vllm", &flags, NULL) != OOMSIGHT_OK) abort();
    }
    return &flags;
}

static const char *const json[] = {"{\"cudagraph_mode\": \"PIECEWISE\"}",
                                   "{\"max_cudagraph_capture_size\": 128}",
                                   "{\"cudagraph_capture_sizes\": [1, 2, 4, 8]}",
                                   "3",
                                   "{\"method\": \"mtp\", \"num_speculative_tokens\": 2}",
                                   "{\"method\": \"ngram\", \"num_speculative_tokens\": 5}",
                                   "{\"image\": 0}",
                                   "{\"image\": 4, \"video\": 1}",
                                   "{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0}}",
                                   "{",
                                   "[]",
                                   "{\"level\": 0}"};
static const char *const texts[] = {
    "auto",          "fp8",   "fp8_e5m2",   "bfloat16",    "float16",    "awq",  "gptq_marlin",
    "bitsandbytes",  "dummy", "FLASH_ATTN", "TRITON_ATTN", "FLASHINFER", "None", "throughput",
    "interactivity", "16k",   "1M",         "4GiB",        "-1",         "",     "\x1b[2J",
    "all",           "align", "generate",   "pooling"};
static const char *const loose[] = {"VLLM_USE_V1=0",
                                    "VLLM_USE_V2_MODEL_RUNNER=1",
                                    "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1",
                                    "VLLM_ATTENTION_BACKEND=FLASHINFER",
                                    "VLLM_USE_FLASHINFER_SAMPLER=1",
                                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                                    "VLLM_PP_LAYER_PARTITION=3,1",
                                    "-tp",
                                    "-dp",
                                    "-pp",
                                    "-O3",
                                    "-O.cudagraph_mode=NONE",
                                    "--enable-expert-parallel",
                                    "--enable-lora"};

static const char *value_for(const oos_flag_form *form)
{
    if (fuzz_pick(8) == 0) return fuzz_number();
    if (form->choice_count && fuzz_pick(4)) return form->choices[fuzz_pick(form->choice_count)];
    switch (form->kind) {
    case OOS_FLAG_KIND_INT:
    case OOS_FLAG_KIND_FLOAT: return fuzz_number();
    case OOS_FLAG_KIND_JSON: return json[fuzz_pick(sizeof json / sizeof *json)];
    case OOS_FLAG_KIND_SWITCH:
    case OOS_FLAG_KIND_STR:
    case OOS_FLAG_KIND_CHOICE:
    case OOS_FLAG_KIND_LIST: break;
    }
    return texts[fuzz_pick(sizeof texts / sizeof *texts)];
}

static void put_flag(fuzz_input *input, fuzz_part *part, size_t at)
{
    char words[512];
    const oos_flag_table *flags = table();
    const oos_flag_record *flag = &flags->list[fuzz_pick(flags->count)];
    while (!flag->memory && fuzz_pick(4))
        flag = &flags->list[fuzz_pick(flags->count)]; /* most often one that matters */
    const oos_flag_form *form = &flag->forms[fuzz_pick(flag->form_count)];
    const char *name = flag->negative && fuzz_pick(4) == 0      ? flag->negative
                       : flag->alias_count && fuzz_pick(4) == 0 ? flag->aliases[fuzz_pick(flag->alias_count)]
                                                                : flag->name;
    bool const bare = form->most_values == 0;
    int const len = snprintf(words, sizeof words, "%s%s%s\n", name,
                             bare           ? ""
                             : fuzz_pick(3) ? "\n"
                                            : "=",
                             bare ? "" : value_for(form));
    if (len > 0 && (size_t)len < sizeof words) fuzz_replace(input, part, at, 0, words, (size_t)len);
}

void fuzz_mutate_words(fuzz_input *input, fuzz_part *part)
{
    size_t at = part->begin + fuzz_pick(part->end - part->begin + 1);
    while (at > part->begin && input->bytes[at - 1] != '\n') at--;
    switch (fuzz_pick(6)) {
    case 0:
    case 1:
    case 2: put_flag(input, part, at); break;
    case 3: {
        const char *word = loose[fuzz_pick(sizeof loose / sizeof *loose)];
        size_t const first =
            strchr(word, '=') && word[0] != '-' ? part->begin : at; /* assignments stand in front */
        if (fuzz_replace(input, part, first, 0, "\n", 1))
            fuzz_replace(input, part, first, 0, word, strlen(word));
        break;
    }
    case 4: fuzz_mutate_number(input, part); break;
    default: fuzz_mutate_lines(input, part); break;
    }
}
