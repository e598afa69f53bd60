/* What the engine refuses before it looks at memory: each case was put to the real engine. */
#include "plan_fixture.h"

#include "engines/vllm/vllm.h"

#include <stdio.h>

static oos_refusal refusal;
static const char *algo; /* of a ModelOpt checkpoint */
static bool produced;
static oos_model layers_of; /* whose matrices the model has */

/* A model of 32 heads, 8 KV heads and 40960 positions, with a command's words behind it. */
static const char *said_of(const char *version, unsigned capability, uint64_t gpus, const char *architecture,
                           const char *method, const char *words)
{
    static fixture f;
    static oos_flag_table table;
    oomsight_error error = {0};
    if (f.arena) fixture_free(&f);
    fixture_init(&f, version, capability);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 36);
    f.model.architecture = architecture;
    f.model.model_type = "qwen3";
    f.model.quant_method = method;
    f.model.modelopt_algo = algo;
    f.model.modelopt_produced = produced;
    f.model.matrices = layers_of.matrices;
    f.model.matrix_count = layers_of.matrix_count;
    f.model.quants = layers_of.quants;
    f.model.quant_count = layers_of.quant_count;
    f.model.heads = 32;
    f.model.kv_heads = 8;
    f.model.head_dim = 128;
    f.model.max_position = 40960;
    f.device.count = gpus;
    f.device.count_given = gpus > 0;
    char text[512];
    const char *list[40] = {"vllm", "serve", "m"};
    size_t count = 3;
    snprintf(text, sizeof text, "%s", words);
    for (char *rest = NULL, *word = strtok_r(text, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        list[count++] = word;
    assert_int_equal(oos_flags_load(f.arena, NULL, "vllm", &table, &error), OOMSIGHT_OK);
    assert_int_equal(oos_serve_read_as(&oos_vllm_dialect, f.arena, list, count, &table, f.rules.version,
                                       &f.serve, &f.env, &error),
                     OOMSIGHT_OK);
    assert_int_equal(oos_arguments_check(f.arena, fixture_setup(&f), &refusal, &error), OOMSIGHT_OK);
    return refusal.sentence;
}

static const char *said(const char *version, unsigned capability, uint64_t gpus, const char *architecture,
                        const char *words)
{
    return said_of(version, capability, gpus, architecture, NULL, words);
}

static void is_refused(const char *sentence, const char *part)
{
    if (!sentence || !strstr(sentence, part))
        fail_msg("wanted `%s`, got `%s`", part, sentence ? sentence : "taken");
}

#define NEWEST(words) said("0.33.0", 90, 8, "Qwen3ForCausalLM", words)

static void a_plain_command_is_taken(void **state)
{
    (void)state;
    static const char *const versions[] = {"0.8.5", "0.11.0", "0.19.1", "0.24.0", "0.28.0", "0.32.0"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        assert_null(said(versions[i], 90, 8, "Qwen3ForCausalLM", ""));
        assert_null(
            said(versions[i], 90, 8, "Qwen3ForCausalLM", "-tp|8|--max-model-len|8192|--max-num-seqs|64"));
        assert_null(said(versions[i], 90, 8, "Qwen3ForCausalLM", "--quantization|fp8|--kv-cache-dtype|fp8"));
    }
}

static void heads_must_divide_by_the_ranks(void **state)
{
    (void)state;
    is_refused(NEWEST("-tp|3"),
               "Total number of attention heads (32) must be divisible by tensor parallel size (3)");
    assert_string_equal(refusal.mends[0].flag, "--tensor-parallel-size");
    assert_int_equal(refusal.mends[0].value, 2);
}

static void a_length_above_the_models_needs_a_variable(void **state)
{
    (void)state;
    is_refused(NEWEST("--max-model-len|100000"),
               "greater than the derived max_model_len (max_position_embeddings=40960)");
    assert_int_equal(refusal.mends[0].value, 40960);
    assert_null(NEWEST("--max-model-len|40960"));
}

static void ranks_beyond_the_gpus_that_were_given_are_refused(void **state)
{
    (void)state;
    is_refused(said("0.32.0", 90, 4, "Qwen3ForCausalLM", "-tp|8"),
               "World size (8) is larger than the number of available GPUs (4)");
    is_refused(said("0.32.0", 90, 1, "Qwen3ForCausalLM", "-tp|2"), "World size (2)");
    is_refused(said("0.12.0", 90, 1, "Qwen3ForCausalLM", "-tp|2"),
               "Tensor parallel size (2) cannot be larger than the number of available GPUs (1).");
    is_refused(said("0.11.1", 90, 1, "Qwen3ForCausalLM", "-tp|2"), "Tensor parallel size (2)");
    is_refused(said("0.11.0", 90, 1, "Qwen3ForCausalLM", "-tp|2"), "placement group");
    assert_null(said("0.32.0", 90, 0, "Qwen3ForCausalLM",
                     "-tp|8")); /* a name without a number: as many as it takes */
}

static void batches_are_no_smaller_than_what_must_fit_in_them(void **state)
{
    (void)state;
    is_refused(NEWEST("--max-num-seqs|1024|--max-num-batched-tokens|512"),
               "max_num_batched_tokens (512) must be greater than or equal to max_num_seqs (1024)");
    is_refused(NEWEST("--no-enable-chunked-prefill|--max-num-batched-tokens|2048|--max-model-len|16000"),
               "max_num_batched_tokens (2048) is smaller than max_model_len (16000)");
}

static void quantisations_must_be_known_and_be_the_checkpoints(void **state)
{
    (void)state;
    is_refused(NEWEST("--quantization|nonsense"), "Unknown quantization method: nonsense");
    is_refused(NEWEST("--quantization|awq"), "Cannot find the config file for awq");
    is_refused(said("0.32.0", 70, 1, "Qwen3ForCausalLM", "--quantization|fp8"),
               "Minimum capability: 75. Current capability: 70");
}

static void a_marlin_kernel_takes_the_type_that_the_plain_method_does_not(void **state)
{
    (void)state;
    assert_null(said_of("0.19.1", 90, 8, "Qwen3ForCausalLM", "awq", ""));
    assert_null(said_of("0.11.0", 90, 8, "Qwen3ForCausalLM", "gptq", ""));
    is_refused(said_of("0.19.1", 90, 8, "Qwen3ForCausalLM", "awq", "--quantization|awq"),
               "torch.bfloat16 is not supported for quantization method awq");
    is_refused(said_of("0.32.0", 90, 8, "Qwen3ForCausalLM", "bitsandbytes", ""),
               "Unknown quantization method: bitsandbytes");
}

static void an_architecture_of_another_release_is_refused_and_an_unheard_one_is_not(void **state)
{
    (void)state;
    is_refused(said("0.9.0", 90, 1, "GptOssForCausalLM", ""),
               "Model architectures ['GptOssForCausalLM'] are not supported for now");
    is_refused(said("0.8.0", 90, 1, "Qwen3ForCausalLM", ""), "not supported for now (first in 0.8.4)");
    is_refused(said("0.32.0", 90, 1, "XverseForCausalLM", ""), "supported in vLLM until v0.23.0");
    /* it went, but the Transformers library serves it */
    assert_null(said("0.11.0", 90, 1, "MllamaForConditionalGeneration", ""));
    assert_null(said("0.10.1", 90, 1, "GptOssForCausalLM", ""));
    assert_null(said("0.32.0", 90, 1, "NobodyKnowsForCausalLM", ""));
}

static void numbers_outside_their_bounds_are_refused(void **state)
{
    (void)state;
    is_refused(NEWEST("--gpu-memory-utilization|1.5"),
               "gpu_memory_utilization: Input should be less than or equal to 1");
    is_refused(NEWEST("--max-num-seqs|0"), "max_num_seqs: Input should be greater than or equal to 1");
    is_refused(NEWEST("-tp|0"), "tensor_parallel_size: Input should be greater than or equal to 1");
    is_refused(NEWEST("--enable-lora|--max-lora-rank|24"), "invalid choice: '24'");
}

static void drafts_the_model_has_not_are_refused(void **state)
{
    (void)state;
    is_refused(NEWEST("--speculative-config|{\"method\":\"mtp\",\"num_speculative_tokens\":2}"), "mtp");
    is_refused(NEWEST("--decode-context-parallel-size|2"), "tp_size=1 must be divisible by dcp_size=2");
    assert_null(NEWEST(
        "--speculative-config|{\"method\":\"ngram\",\"num_speculative_tokens\":2,\"prompt_lookup_max\":4}"));
}

static void json_values_have_the_keys_and_kinds_of_the_release(void **state)
{
    (void)state;
    is_refused(NEWEST("--kv-events-config|{\"nonsense\": 1}"), "nonsense: Unexpected keyword argument");
    is_refused(NEWEST("--kv-events-config|{\"buffer_steps\": \"many\"}"),
               "buffer_steps: Input should be a valid integer");
    is_refused(NEWEST("--compilation-config|[1, 2]"), "Input should be an object");
    is_refused(NEWEST("--compilation-config|{\"level\": 3}"), "level: Unexpected keyword argument");
    assert_null(NEWEST("--compilation-config|{\"mode\": 3, \"cudagraph_mode\": \"full\"}"));
    assert_null(NEWEST("--kv-events-config|{\"buffer_steps\": \"4\", \"endpoint\": \"tcp://*:1\"}"));
    /* before 0.16 unknown keys were passed over, and `level` was a key */
    assert_null(said("0.11.0", 90, 8, "Qwen3ForCausalLM", "--kv-events-config|{\"nonsense\": 1}"));
    assert_null(said("0.15.0", 90, 8, "Qwen3ForCausalLM", "--compilation-config|{\"level\": 3}"));
}

static void methods_of_drafting_are_those_of_the_release(void **state)
{
    (void)state;
    const char *suffix = "--speculative-config|{\"method\": \"suffix\", \"num_speculative_tokens\": 3}";
    is_refused(said("0.11.0", 90, 8, "Qwen3ForCausalLM", suffix), "method: Input should be");
    is_refused(NEWEST("--speculative-config|{\"method\": \"nonsense\", \"num_speculative_tokens\": 3}"),
               "method: Input should be");
    is_refused(NEWEST("--speculative-config|{\"method\": \"ngram\", \"nonsense\": 3}"),
               "nonsense: Unexpected keyword argument");
    assert_null(NEWEST("--speculative-config|{\"method\": \"ngram\", \"num_speculative_tokens\": 3}"));
}

static void a_switch_to_leave_out_is_named_as_it_was_given(void **state)
{
    (void)state;
    is_refused(NEWEST("--enable-auto-tool-choice"), "requires --tool-call-parser");
    assert_string_equal(refusal.mends[0].flag, "--enable-auto-tool-choice");
    is_refused(NEWEST("--no-enable-chunked-prefill|--max-num-batched-tokens|2048|--max-model-len|16000"),
               "is smaller than max_model_len");
    for (size_t i = 0; i < refusal.mend_count; i++)
        if (refusal.mends[i].leave_out)
            assert_string_not_equal(refusal.mends[i].flag, "--enable-chunked-prefill");
}

static void launch_options_that_exclude_one_another_are_refused(void **state)
{
    (void)state;
    is_refused(NEWEST("--data-parallel-rank|2"), "data_parallel_external_lb can only be set");
    is_refused(NEWEST("--data-parallel-external-lb"), "requires a data-parallel rank");
    is_refused(NEWEST("-dp|2|--data-parallel-rank|1"), "Non-MoE models do not support external");
    assert_null(said("0.19.1", 90, 8, "Qwen3ForCausalLM", "-dp|2|--data-parallel-rank|1"));
    is_refused(said("0.19.1", 90, 8, "Qwen3ForCausalLM", "-dp|2|--data-parallel-rank|2"),
               "in the range [0, 2)");
    is_refused(NEWEST("--distributed-executor-backend|nonsense"), "not enough values to unpack");
    assert_null(NEWEST("--distributed-executor-backend|mp"));
    assert_null(NEWEST("--distributed-executor-backend|my.Executor"));
    is_refused(NEWEST("--enable-dbo"), "Microbatching currently only supports");
    assert_null(NEWEST("--enable-dbo|--all2all-backend|deepep_low_latency"));
}

static void a_scheduler_that_runs_ahead_takes_only_some_drafts(void **state)
{
    (void)state;
    const char *words =
        "--async-scheduling|--speculative-config|{\"method\": \"ngram\", \"num_speculative_tokens\": 3}";
    is_refused(said("0.32.0", 90, 8, "Qwen3ForCausalLM", words),
               "async scheduling is only supported with EAGLE/MTP");
    assert_null(NEWEST(words)); /* by the newer runner */
    is_refused(NEWEST("--async-scheduling|--speculative-config|{\"method\": \"suffix\"}"),
               "not supported by the V1 model runner with suffix-based");
    is_refused(said("0.11.0", 90, 8, "Qwen3ForCausalLM", words), "speculative decoding is not supported");
    is_refused(said("0.11.0", 90, 8, "Qwen3ForCausalLM", "--async-scheduling|-pp|2"),
               "pipeline-parallel-size > 1");
    assert_null(NEWEST("--async-scheduling|-pp|2"));
}

static void a_method_without_its_settings_is_refused_as_the_release_does(void **state)
{
    (void)state;
    is_refused(NEWEST("--quantization|torchao"), "missing required positional arguments");
    is_refused(said("0.11.0", 90, 8, "Qwen3ForCausalLM", "--quantization|gptq"),
               "Cannot find the config file");
    assert_null(said("0.19.1", 90, 8, "Qwen3ForCausalLM", "--quantization|bitsandbytes"));
    assert_null(NEWEST("--quantization|fp8_per_tensor"));
    is_refused(said("0.32.0", 70, 8, "Qwen3ForCausalLM", "--quantization|fp8_per_tensor"),
               "Minimum capability: 75. Current capability: 70");
    is_refused(NEWEST("--max-model-len|0"), "max_model_len must be a positive integer");
    is_refused(NEWEST("--max-cudagraph-capture-size|8|-cc|{\"max_cudagraph_capture_size\": 8}"),
               "mutually exclusive");
}

static void the_parser_meets_mistakes_in_the_order_of_the_words(void **state)
{
    (void)state;
    is_refused(NEWEST("--enforce-eager|true|--compilation-config|{x|--dtype|fp16"), "Invalid JSON");
    is_refused(NEWEST("--limit-mm-per-prompt|image=2|--dtype|fp16"), "Value image=2 cannot be converted");
    is_refused(NEWEST("--dtype|fp16|--gpu-memory-utilization|-0.1"), "list index out of range");
    is_refused(NEWEST("--max-model-len|8.5K"), "Did you mean to use 8.5k instead?");
    is_refused(NEWEST("-O4|-tp|3"), "optimization_level: Input should be 0, 1, 2 or 3");
}

#define OLD(words) said("0.11.0", 90, 8, "Qwen3ForCausalLM", words)

static void numbers_are_checked_by_hand_where_no_bounds_are_declared(void **state)
{
    (void)state;
    is_refused(OLD("--gpu-memory-utilization|1.5"), "GPU memory utilization must be less than 1.0. Got 1.5.");
    is_refused(OLD("--cpu-offload-gb|-1"), "CPU offload space must be non-negative, but got -1.0");
    is_refused(OLD("-tp|0"), "integer modulo by zero");
    is_refused(OLD("--max-num-batched-tokens|0"), "max_num_batched_tokens (0) must be greater than");
    is_refused(OLD("--enable-lora|--max-lora-rank|1"), "max_lora_rank (1) must be one of");
    is_refused(OLD("--num-redundant-experts|2"), "num_redundant_experts is set to 2 but EPLB is not enabled");
    is_refused(OLD("--speculative-config|{\"method\": \"ngram\", \"num_speculative_tokens\": 0}"),
               "Expected num_speculative_tokens to be greater than zero");
    is_refused(OLD("--speculative-config|{\"method\": \"mtp\", \"num_speculative_tokens\": 2}"),
               "Speculative decoding with draft model is not supported yet");
    is_refused(OLD("--max-model-len|auto"), "invalid human_readable_int value: 'auto'");
    is_refused(OLD("--seed|x"), "Value x cannot be converted to <class 'int'>");
    assert_null(OLD("--max-num-seqs|0"));
    assert_null(NEWEST("--max-model-len|auto"));
    is_refused(NEWEST("--enable-lora|--max-loras|0"),
               "max_loras: Input should be greater than or equal to 1");
    is_refused(NEWEST("--speculative-config|{}"), "num_speculative_tokens must be provided");
}

static void a_release_takes_and_refuses_what_its_configuration_does(void **state)
{
    (void)state;
    /* chunks are not a choice there; the longest prompt fits in any batch */
    assert_null(OLD("--no-enable-chunked-prefill|--max-num-batched-tokens|2048"));
    assert_null(OLD("-tp|4|--decode-context-parallel-size|2"));
    is_refused(said("0.24.0", 90, 8, "Qwen3ForCausalLM", "-tp|4|--decode-context-parallel-size|2"),
               "must be greater than total num kv heads 8 when enable decode context parallel");
    is_refused(said("0.24.0", 90, 8, "Qwen3ForCausalLM", "--max-num-partial-prefills|4"),
               "Concurrent Partial Prefill is not supported");
    is_refused(NEWEST("-pp|2|--distributed-executor-backend|uni"), "Pipeline Parallelism without Ray");
    is_refused(NEWEST("--attention-backend|NONSENSE|--cpu-offload-gb|-1"), "Unknown attention backend");
    assert_null(OLD("--distributed-executor-backend|nonsense"));
    /* more ranks than GPUs are Ray's matter there, which comes later */
    is_refused(said("0.11.0", 90, 4, "Qwen3ForCausalLM", "-tp|8"), "in the placement group");
    assert_int_equal(refusal.phase, OOS_PHASE_DISTRIBUTED_INIT);
    is_refused(said("0.11.0", 90, 4, "Qwen3ForCausalLM", "-tp|7"), "must be divisible by");
}

static void classes_read_their_json_also_where_they_pass_over_keys(void **state)
{
    (void)state;
    is_refused(OLD("--compilation-config|{not json"), "Invalid JSON: key must be a string");
    is_refused(OLD("--compilation-config|3"), "Input should be an object");
    assert_null(OLD("--compilation-config|{\"mode\": 7}")); /* a key of later releases */
    is_refused(NEWEST("--compilation-config|{\"mode\": 7}"), "mode: Input should be 0, 1, 2 or 3");
    /* a flag that is not there is told as such, whatever its value */
    is_refused(OLD("--performance-mode|fast"), "unrecognized arguments: --performance-mode fast");
}

static void a_model_that_float16_does_not_suit_is_given_another_type(void **state)
{
    (void)state;
    assert_false(said("0.19.1", 70, 1, "Gemma2ForCausalLM", "") != NULL);
    is_refused(said_of("0.24.0", 90, 8, "GptOssForCausalLM", "mxfp4",
                       "--quantization|gptq|--quantization|awq|-tp|3"),
               "divisible"); /* its own method wins */
    is_refused(said_of("0.11.0", 90, 8, "GptOssForCausalLM", "mxfp4", "--quantization|awq"),
               "(mxfp4) does not match");
    /* a word for online quantisation, too, which takes older devices and float16 */
    assert_null(said("0.32.0", 75, 8, "Qwen3ForCausalLM", "--quantization|mxfp4|--dtype|float16"));
    assert_null(said("0.32.0", 75, 8, "Qwen3ForCausalLM", "--quantization|mxfp8|--dtype|float16"));
    is_refused(said("0.32.0", 70, 8, "Qwen3ForCausalLM", "--quantization|mxfp8|--dtype|float16"),
               "Minimum capability: 75");
    is_refused(said("0.27.0", 75, 8, "Qwen3ForCausalLM", "--quantization|mxfp4|--dtype|float16"),
               "Minimum capability: 80");
    is_refused(said_of("0.32.0", 75, 8, "Qwen3ForCausalLM", "mxfp4", "--dtype|float16"),
               "Minimum capability: 80");
}

/* The layers of a checkpoint of compressed-tensors, of one kind. */
static const char *said_of_kind(const char *version, unsigned capability, oos_quant kind, bool expert)
{
    static oos_quant quants[2];
    static oos_matrix matrix;
    quants[1] = kind;
    matrix = (oos_matrix){.name = "mlp.down_proj", .linear = true, .expert = expert, .quant = 1};
    layers_of = (oos_model){.matrices = &matrix, .matrix_count = 1, .quants = quants, .quant_count = 2};
    const char *sentence = said_of(version, capability, 8, "Qwen3ForCausalLM", "compressed-tensors", "");
    layers_of = (oos_model){0};
    return sentence;
}

static void a_kind_of_layer_asks_for_more_than_its_method(void **state)
{
    (void)state;
    oos_quant const packed = {.kind = OOS_QUANT_PACKED_INT, .bits = 4, .weight_only = true},
                    int8 = {.kind = OOS_QUANT_INT8, .bits = 8},
                    fp8 = {.kind = OOS_QUANT_FP8_CHANNEL, .bits = 8},
                    nvfp4 = {.kind = OOS_QUANT_NVFP4, .bits = 4, .weight_only = true};
    is_refused(said_of_kind("0.19.1", 70, packed, false), "Min capability: 75. Current capability: 70");
    assert_int_equal(refusal.phase, OOS_PHASE_WEIGHT_LOAD);
    assert_null(said_of_kind("0.19.1", 70, packed, true));
    assert_null(said_of_kind("0.19.1", 75, packed, false));
    is_refused(said_of_kind("0.11.2", 75, packed, false), "Min capability: 80");
    assert_null(said_of_kind("0.12.0", 75, packed, false));
    is_refused(said_of_kind("0.32.0", 70, int8, false), "Min capability: 75");
    assert_null(said_of_kind("0.8.5", 75, int8, false));
    is_refused(said_of_kind("0.15.1", 75, fp8, false), "Min capability: 80");
    assert_null(said_of_kind("0.16.0", 75, fp8, false));
    assert_null(said_of_kind("0.15.1", 89, fp8, false));
    is_refused(said_of_kind("0.15.1", 75, nvfp4, false), "Min capability: 80");
    assert_null(said_of_kind("0.22.0", 75, nvfp4, false));
    assert_null(said_of_kind("0.32.0", 70, nvfp4, false)); /* another file has it: not known */
}

static void a_modelopt_checkpoint_has_the_method_of_its_scheme(void **state)
{
    (void)state;
    algo = "NVFP4";
    produced = true;
    is_refused(said_of("0.19.1", 90, 8, "Qwen3ForCausalLM", "modelopt", "--quantization|awq"),
               "(modelopt_fp4) does not match");
    assert_null(said_of("0.24.0", 90, 8, "Qwen3ForCausalLM", "modelopt", "--quantization|awq"));
    is_refused(
        said_of("0.24.0", 70, 8, "Qwen3ForCausalLM", "modelopt", ""),
        "The quantization method modelopt_fp4 is not supported for the current GPU. Minimum capability: 75");
    algo = "MIXED_PRECISION";
    is_refused(said_of("0.28.0", 90, 8, "Qwen3ForCausalLM", "modelopt", ""),
               "Unknown ModelOpt quant algo: MIXED_PRECISION");
    produced = false;
    assert_null(said_of("0.28.0", 90, 8, "Qwen3ForCausalLM", "modelopt", ""));
    algo = NULL;
}

static void parts_of_the_configuration_are_checked_in_their_order(void **state)
{
    (void)state;
    is_refused(NEWEST("--media-io-kwargs|{\"image\": 1}|--max-logprobs|-2"),
               "media_io_kwargs.image: Input should be a valid dictionary");
    is_refused(NEWEST("--safetensors-prefetch-num-threads|0"),
               "safetensors_prefetch_num_threads: Input should be greater than or equal to 1");
    is_refused(NEWEST("--enable-fault-tolerance"), "Fault tolerance requires external load balancer mode");
    is_refused(NEWEST("--data-parallel-multi-port-external-lb"), "requires --data-parallel-size > 1");
    is_refused(NEWEST("--offload-backend|prefetch"),
               "offload_num_in_group (1) must be <= offload_group_size (0)");
    assert_null(NEWEST("--offload-backend|prefetch|--offload-group-size|4"));
    is_refused(NEWEST("--grpc-port|50051"), "--grpc-port requires VLLM_USE_RUST_FRONTEND=1");
    is_refused(NEWEST("--mamba-ssu-algorithm|horizontal"), "only supported with the FlashInfer backend");
    is_refused(OLD("--enable-lora|--max-loras|0"), "max_loras (0) must be >= 1.");
    is_refused(NEWEST("--quantization|auto-round"), "Unknown quantization method: auto-round");
    is_refused(NEWEST("--quantization|modelopt"), "Cannot find the config file for modelopt");
    is_refused(said("0.19.1", 90, 8, "Qwen3ForCausalLM", "--max-model-len|0"),
               "max_num_batched_tokens: Input should be greater than or equal to 1");
    is_refused(NEWEST("--gpu-memory-utilization|-0.1|--enforce-eager"),
               "unrecognized arguments: {\"1\": \"--enforce-eager\"}");
}

static oos_graph_mode graphs_of(const char *version, const char *architecture, uint64_t mode)
{
    fixture f;
    fixture_init(&f, version, 90);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 64, 8, 64, 0), 24);
    f.model.architecture = architecture;
    f.serve.compilation.level = oos_u64_of(mode);
    oos_graph_mode const graphs = fixture_setup(&f)->graph_mode;
    fixture_free(&f);
    return graphs;
}

static void graphs_of_pieces_need_the_full_mode_unless_they_break_by_themselves(void **state)
{
    (void)state;
    assert_int_equal(graphs_of("0.24.0", "LlamaForCausalLM", 3), OOS_GRAPH_FULL_AND_PIECEWISE);
    assert_int_equal(graphs_of("0.24.0", "LlamaForCausalLM", 2), OOS_GRAPH_NONE);
    assert_int_equal(graphs_of("0.24.0", "LlamaForCausalLM", 0), OOS_GRAPH_NONE);
    assert_int_equal(graphs_of("0.24.0", "DeepseekV4ForCausalLM", 0), OOS_GRAPH_FULL_AND_PIECEWISE);
    assert_int_equal(graphs_of("0.11.0", "LlamaForCausalLM", 0), OOS_GRAPH_NONE);
    assert_int_equal(graphs_of("0.32.0", "LlamaForCausalLM", 0), OOS_GRAPH_FULL_DECODE_ONLY);
    is_refused(NEWEST("--max-cudagraph-capture-size|16|-cc|{\"cudagraph_capture_sizes\": [1, 2, 4]}"),
               "should be consistent with the max value of cudagraph_capture_sizes(=4)");
    /* where none is captured nobody looks at their sizes */
    static const char *const sizes[] = {
        "-cc|{\"cudagraph_capture_sizes\": []}", "--max-cudagraph-capture-size|0",
        "--max-cudagraph-capture-size|16|-cc.cudagraph_capture_sizes=[1,2,4]"};
    static const char *const none[] = {"--enforce-eager", "-O0", "-cc.cudagraph_mode=NONE"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_non_null(NEWEST(sizes[i]));
        for (size_t n = 0; n < sizeof none / sizeof *none; n++) {
            char words[200];
            snprintf(words, sizeof words, "%s|%s", sizes[i], none[n]);
            const char *sentence = NEWEST(words);
            if (sentence) fail_msg("%s: %s", words, sentence);
        }
    }
}

static void gemma_4_is_given_a_batch_that_a_video_fits_in(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.24.0", 80);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 24);
    f.model.architecture = "Gemma4ForConditionalGeneration";
    f.model.multimodal = f.model.bidirectional_images = true;
    f.model.max_position = 131072;
    f.device.nvml_total_bytes = 24 * OOS_GIB;
    assert_int_equal(fixture_setup(&f)->max_num_batched_tokens, 2496);
    f.model.bidirectional_images = false; /* E2B, E4B */
    assert_int_equal(fixture_setup(&f)->max_num_batched_tokens, 2048);
    f.model.bidirectional_images = true;
    f.model.architecture = "Gemma3ForConditionalGeneration";
    assert_int_equal(fixture_setup(&f)->max_num_batched_tokens, 2048);
    fixture_free(&f);
}

static size_t captured(const char *version, const char *architecture, uint64_t requests)
{
    fixture f;
    fixture_init(&f, version, 90);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 64, 8, 64, 0), 24);
    f.model.architecture = architecture;
    f.model.max_position = 131072;
    f.serve.max_num_seqs = oos_u64_of(requests);
    f.serve.max_num_batched_tokens = oos_u64_of(8192);
    size_t const count = fixture_setup(&f)->capture_count;
    fixture_free(&f);
    return count;
}

static void gpt_oss_is_captured_for_more_than_others(void **state)
{
    (void)state;
    assert_int_equal(captured("0.32.0", "GptOssForCausalLM", 256), 83);
    assert_int_equal(captured("0.24.0", "GptOssForCausalLM", 4), 83); /* however few requests there are */
    assert_int_equal(captured("0.11.0", "GptOssForCausalLM", 256), 81);
    assert_int_equal(captured("0.24.0", "LlamaForCausalLM", 256), 51);
    assert_int_equal(captured("0.11.0", "LlamaForCausalLM", 256), 67);
    assert_int_equal(captured("0.11.0", "LlamaForCausalLM", 1), 3); /* 1, 2 and 4 are always there */
}

/* argparse stops at the first word that it cannot take; what was meant is offered. */
static void a_switch_with_a_value_is_refused_and_its_meaning_kept(void **state)
{
    (void)state;
    is_refused(NEWEST("--enable-chunked-prefill=False"),
               "--enable-chunked-prefill/--disable-chunked-prefill: ignored explicit argument 'False'");
    is_refused(said("0.32.0", 90, 8, "Qwen3ForCausalLM", "--enable-chunked-prefill=False"),
               "--enable-chunked-prefill/--no-enable-chunked-prefill: ignored explicit argument 'False'");
    assert_string_equal(refusal.mends[0].flag, "--no-enable-chunked-prefill");
    assert_string_equal(refusal.mends[0].instead_of, "--enable-chunked-prefill");
    assert_null(refusal.mends[0].text);
    is_refused(NEWEST("--enable-prefix-caching=true|--max-num-seqs|many"),
               "ignored explicit argument 'true'");
    assert_string_equal(refusal.mends[0].flag, "--enable-prefix-caching");
    is_refused(NEWEST("--max-num-seqs|many|--enable-prefix-caching=true"), "invalid int value");
    is_refused(NEWEST("--enable-prefix-caching="), "ignored explicit argument ''");
    assert_true(refusal.mends[0].leave_out);
}

static void spaces_around_a_number_are_taken(void **state)
{
    (void)state;
    assert_null(NEWEST("--max-model-len|4096 |--gpu-memory-utilization| 0.9\n|--max-num-seqs|\t8"));
    assert_null(said("0.11.0", 90, 8, "Qwen3ForCausalLM", "--block-size| 64"));
    is_refused(NEWEST("--max-model-len|4096 x"), "--max-model-len");
    is_refused(NEWEST("--dtype|auto "), "invalid choice");
}

static void whatever_is_glued_to_o_is_the_level(void **state)
{
    (void)state;
    is_refused(NEWEST("-O.cudagraph_mode=PIECEWISE"), "optimization_level: Input should be 0, 1, 2 or 3");
    assert_string_equal(refusal.mends[0].flag, "--compilation-config.cudagraph_mode");
    assert_string_equal(refusal.mends[0].text, "PIECEWISE");
    is_refused(NEWEST("-O=None"), "optimization_level");
    assert_null(NEWEST("-O 3"));
    assert_null(NEWEST("-O3"));
    is_refused(NEWEST("-O|{\"level\": 3}"), "unrecognized arguments: -O");
    assert_null(said("0.11.0", 90, 8, "Qwen3ForCausalLM", "-O.cudagraph_mode=PIECEWISE"));
}

static void a_connector_needs_a_role(void **state)
{
    (void)state;
    is_refused(NEWEST("--kv-transfer-config|{\"kv_connector\": \"LMCacheConnectorV1\"}"),
               "Please specify kv_role");
    is_refused(NEWEST("--kv-transfer-config|{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"both\"}"),
               "kv_role: Input should be");
    assert_null(
        NEWEST("--kv-transfer-config|{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}"));
}

static void a_misspelt_flag_is_given_its_name_and_its_word(void **state)
{
    (void)state;
    is_refused(NEWEST("--gpu-memory-utilisation|0.9"), "unrecognized arguments");
    assert_string_equal(refusal.mends[0].flag, "--gpu-memory-utilization");
    assert_string_equal(refusal.mends[0].text, "0.9");
}

/* Which models have MTP layers of their own is read out of each release, not out of what is known of the model here. */
static void a_model_drafts_for_itself_where_the_release_says_so(void **state)
{
    (void)state;
    static const char mtp[] = "--speculative-config|{\"method\": \"mtp\", \"num_speculative_tokens\": 1}";
    assert_null(said("0.32.0", 90, 8, "Glm4MoeLiteForCausalLM", mtp));
    assert_null(said("0.24.0", 90, 8, "MiMoV2FlashForCausalLM", mtp));
    assert_null(said("0.11.2", 90, 8, "MiMoForCausalLM", mtp));
    is_refused(said("0.32.0", 90, 8, "Qwen3ForCausalLM", mtp), "Unsupported speculative method: 'mtp'");
    assert_null(said("0.99.0", 90, 8, "Qwen3ForCausalLM", mtp)); /* who knows */
}

/* What no known release has may be new in one that is newer than all of them. */
static void names_of_a_release_that_was_not_read_are_not_refused(void **state)
{
    (void)state;
    static const char *const words[] = {"--no-such-flag|1",
                                        "--attention-backend|NO_SUCH",
                                        "--quantization|no_such",
                                        "--kv-cache-dtype|no_such",
                                        ("--speculative-config|{\"method\": \"no_such\", "
                                         "\"model\": \"m\"}"),
                                        "--compilation-config|{\"no_such\": 1}",
                                        "--reasoning-parser|no_such"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!NEWEST(words[i])) fail_msg("%s is taken by the newest", words[i]);
        if (said("0.99.0", 90, 8, "Qwen3ForCausalLM", words[i]))
            fail_msg("%s: %s", words[i], refusal.sentence);
    }
}

static void a_cache_is_of_a_known_type_and_of_the_models(void **state)
{
    (void)state;
    is_refused(NEWEST("--kv-cache-dtype|nonsense"), "Invalid kv_cache_dtype: 'nonsense'");
    is_refused(NEWEST("--kv-cache-dtype|float16"), "is incompatible with dtype=\"bfloat16\"");
    assert_null(NEWEST("--kv-cache-dtype|bfloat16"));
    assert_null(said("0.32.0", 90, 8, "Qwen3ForCausalLM", "--kv-cache-dtype|float16"));
    is_refused(said("0.32.0", 90, 8, "Qwen3ForCausalLM", "--kv-cache-dtype|nonsense"), "invalid choice");
}

static void adapters_need_a_class_and_kernels_that_take_them(void **state)
{
    (void)state;
    is_refused(said("0.33.0", 90, 8, "KimiLinearForCausalLM", "--enable-lora"),
               "LoRA is not supported for KimiLinear");
    assert_null(said("0.32.0", 90, 8, "KimiLinearForCausalLM", "--enable-lora"));
    is_refused(NEWEST("--enable-lora|--moe-backend|deep_gemm_mega_moe"), "moe_backend='deep_gemm_mega_moe'");
    assert_null(NEWEST("--enable-lora"));
}

/* What went from a release seldom comes back, and a refusal that has changed before may change again: neither is certain of a newer one. */
static void a_newer_release_may_have_dropped_what_has_changed_before(void **state)
{
    (void)state;
    static const char suffix[] =
        "--async-scheduling|--speculative-config|{\"method\": \"suffix\", \"num_speculative_tokens\": 3}";
    static const struct {
        const char *words, *sentence;
        bool may_be_over;
    } cases[] = {{"--swap-space|4", "unrecognized arguments: --swap-space 4", true},
                 {"--mamba-cache-mode|all", "invalid choice: 'all'", true},
                 {suffix, "Async scheduling is not supported by the V1 model runner", true},
                 {"-tp|5", "must be divisible by tensor parallel size (5)", false},
                 {"--max-num-seqs|many", "invalid int value: 'many'", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_refused(said("0.99.0", 90, 8, "Qwen3ForCausalLM", cases[i].words), cases[i].sentence);
        assert_int_equal(refusal.may_be_over, cases[i].may_be_over);
        is_refused(NEWEST(cases[i].words), cases[i].sentence);
        assert_false(refusal.may_be_over);
    }
}

static void keys_and_words_inside_json_are_those_of_the_class(void **state)
{
    (void)state;
    is_refused(NEWEST("--structured-outputs-config|{\"backend\": \"nonsense\"}"), "backend: Input should be");
    is_refused(NEWEST("--compilation-config|{\"pass_config\": {\"enable_fusion\": true}}"),
               "pass_config.enable_fusion: Unexpected keyword argument");
    is_refused(NEWEST("--eplb-config|{\"num_redundant_experts\": 32}"), "EPLB is not enabled");
    is_refused(NEWEST("--compilation-config="), "EOF while parsing");
}

static void a_beginning_of_several_flags_is_ambiguous(void **state)
{
    (void)state;
    is_refused(NEWEST("--gpu-memory-utilization|90%|--device|cuda"), "ambiguous option: --device");
}

static void flags_that_need_another_are_refused_in_the_engines_words(void **state)
{
    (void)state;
    static const struct {
        const char *words, *sentence;
    } cases[] = {
        {"--enable-log-outputs", "Error: --enable-log-outputs requires --enable-log-requests"},
        {"--enable-eplb", "enable_expert_parallel must be True to use EPLB."},
        {"--reasoning-parser|nobody", "Reasoning parser 'nobody' not found. Available parsers: deepseek_r1"},
        {"--tensor-parallel-size|8|--decode-context-parallel-size|8",
         "requires `--tensor-parallel-size` (8) to be greater than the model's total number of KV heads (8)"},
        {"--speculative-config|{\"method\":\"eagle\",\"num_speculative_tokens\":2}",
         "num_speculative_tokens was provided but without speculative model."},
        {"--max-cudagraph-capture-size|64|--compilation-config|{\"max_cudagraph_capture_size\":64}",
         "max_cudagraph_capture_size and compilation_config.max_cudagraph_capture_size are mutually "
         "exclusive"},
        {"--cudagraph-capture-sizes|1|2|--compilation-config|{\"cudagraph_capture_sizes\":[1,2]}",
         "cudagraph_capture_sizes and compilation_config.cudagraph_capture_sizes are mutually exclusive"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_refused(NEWEST(cases[i].words), cases[i].sentence);
    is_refused(said("0.19.1", 90, 8, "Qwen3ForCausalLM",
                    "--data-parallel-size|2|--data-parallel-rank|0|--data-parallel-size-local|2"),
               "an external data-parallel rank requires `--data-parallel-size-local 1`; got 2.");
    is_refused(said("0.32.0", 90, 16, "Qwen3ForCausalLM", "-tp|16|--decode-context-parallel-size|4"),
               "(4) exceeds the maximum supported value (2) for `--tensor-parallel-size` (16) and 8 model KV "
               "heads.");
}

int main(void)
{
    static const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_plain_command_is_taken),
        cmocka_unit_test(heads_must_divide_by_the_ranks),
        cmocka_unit_test(a_length_above_the_models_needs_a_variable),
        cmocka_unit_test(ranks_beyond_the_gpus_that_were_given_are_refused),
        cmocka_unit_test(batches_are_no_smaller_than_what_must_fit_in_them),
        cmocka_unit_test(quantisations_must_be_known_and_be_the_checkpoints),
        cmocka_unit_test(a_marlin_kernel_takes_the_type_that_the_plain_method_does_not),
        cmocka_unit_test(an_architecture_of_another_release_is_refused_and_an_unheard_one_is_not),
        cmocka_unit_test(numbers_outside_their_bounds_are_refused),
        cmocka_unit_test(drafts_the_model_has_not_are_refused),
        cmocka_unit_test(launch_options_that_exclude_one_another_are_refused),
        cmocka_unit_test(a_scheduler_that_runs_ahead_takes_only_some_drafts),
        cmocka_unit_test(a_method_without_its_settings_is_refused_as_the_release_does),
        cmocka_unit_test(the_parser_meets_mistakes_in_the_order_of_the_words),
        cmocka_unit_test(json_values_have_the_keys_and_kinds_of_the_release),
        cmocka_unit_test(methods_of_drafting_are_those_of_the_release),
        cmocka_unit_test(a_switch_to_leave_out_is_named_as_it_was_given),
        cmocka_unit_test(numbers_are_checked_by_hand_where_no_bounds_are_declared),
        cmocka_unit_test(a_release_takes_and_refuses_what_its_configuration_does),
        cmocka_unit_test(classes_read_their_json_also_where_they_pass_over_keys),
        cmocka_unit_test(a_model_that_float16_does_not_suit_is_given_another_type),
        cmocka_unit_test(gpt_oss_is_captured_for_more_than_others),
        cmocka_unit_test(parts_of_the_configuration_are_checked_in_their_order),
        cmocka_unit_test(graphs_of_pieces_need_the_full_mode_unless_they_break_by_themselves),
        cmocka_unit_test(gemma_4_is_given_a_batch_that_a_video_fits_in),
        cmocka_unit_test(a_kind_of_layer_asks_for_more_than_its_method),
        cmocka_unit_test(a_modelopt_checkpoint_has_the_method_of_its_scheme),
        cmocka_unit_test(a_switch_with_a_value_is_refused_and_its_meaning_kept),
        cmocka_unit_test(spaces_around_a_number_are_taken),
        cmocka_unit_test(whatever_is_glued_to_o_is_the_level),
        cmocka_unit_test(a_connector_needs_a_role),
        cmocka_unit_test(a_misspelt_flag_is_given_its_name_and_its_word),
        cmocka_unit_test(a_model_drafts_for_itself_where_the_release_says_so),
        cmocka_unit_test(names_of_a_release_that_was_not_read_are_not_refused),
        cmocka_unit_test(a_cache_is_of_a_known_type_and_of_the_models),
        cmocka_unit_test(adapters_need_a_class_and_kernels_that_take_them),
        cmocka_unit_test(a_newer_release_may_have_dropped_what_has_changed_before),
        cmocka_unit_test(keys_and_words_inside_json_are_those_of_the_class),
        cmocka_unit_test(a_beginning_of_several_flags_is_ambiguous),
        cmocka_unit_test(flags_that_need_another_are_refused_in_the_engines_words),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
