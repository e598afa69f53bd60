/* What vLLM is called, how it is started, what it prints and serves. */
#include "facts/facts.h"

const oos_engine_words oos_words_vllm = {
    .name = "vllm",
    .title = "vLLM",
    .config_title = "vLLM config",
    .module = "vllm.entrypoints",
    .server = "vllm.entrypoints.openai.api_server",
    .family = "vllm.entrypoints",
    .serving = "api_server",
    .image = "vllm-openai",
    .image_serves = true,
    .model_flags = {"--model"},
    .tokenizer_flag = "--tokenizer",
    .no_tokenizer_flag = "--skip-tokenizer-init",
    .dummy_flag = "--load-format",
    .dummy_value = "dummy",
    .port_flag = "--port",
    .port = 8000,
    .ready = "Application startup complete",
    .running = "vllm:num_requests_running",
    .waiting = "vllm:num_requests_waiting",
    .kv_used = "vllm:kv_cache_usage_perc",
    .cache_variable = "VLLM_CACHE_ROOT",
    .cache_below = "/torch_compile_cache",
    .wrapper = "vllm/tracing/",
    .computes = {"vllm/ir/", "vllm/kernels"},
    .dry_variable = "VLLM_NO_USAGE_STATS=1",
    /* with a drafter the V2 runner has a kernel tell how many tokens were accepted; the older one counts them on the host */
    .draft_flags = {"--speculative", "-sc"},
    .draft_variable = "VLLM_USE_V2_MODEL_RUNNER=0",
};
