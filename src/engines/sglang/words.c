/* What SGLang is called, how it is started, what it prints and serves. */
#include "facts/facts.h"

const oos_engine_words oos_words_sglang = {
    .name = "sglang",
    .title = "SGLang",
    .config_title = "SGLang config",
    .module = "sglang.launch_server",
    .server = "sglang.launch_server",
    .family = "sglang",
    .serving = "launch_server",
    .image = "lmsysorg/sglang",
    .model_flags = {"--model-path", "--model"},
    .tokenizer_flag = "--tokenizer-path",
    .no_tokenizer_flag = "--skip-tokenizer-init",
    .dummy_flag = "--load-format",
    .dummy_value = "dummy",
    .config_flag = "--config",
    .weights_flags = {"--quantization", "--revision"},
    .host_rank_flags = {"--cpu-offload-gb", "--hicache-size"},
    .port_flag = "--port",
    .port = 30000,
    .ready = "The server is fired up and ready to roll",
    .running = "sglang:num_running_reqs",
    .waiting = "sglang:num_queue_reqs",
    .kv_used = "sglang:token_usage",
};
