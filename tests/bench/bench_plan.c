/* A grid of plans (flags x GPUs x versions) through the public API, beside the time of parsing the config alone:
 * bench_plan MODEL_DIR [SECONDS]. */
#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* the share of a busy machine must not matter */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double config_seconds(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", dir);
    oos_arena *arena = oos_arena_create(1 << 16);
    oos_view bytes;
    if (oos_file_read(arena, path, 1 << 24, &bytes, NULL) != OOMSIGHT_OK) exit(3);
    enum { ROUNDS = 200 };
    double const start = now();
    for (int i = 0; i < ROUNDS; i++) {
        oos_arena *one = oos_arena_create(1 << 16);
        json_t *root;
        if (oos_json_load(one, bytes, &root, NULL) != OOMSIGHT_OK) exit(3);
        oos_arena_free(one);
    }
    double const seconds = (now() - start) / ROUNDS;
    oos_arena_free(arena);
    return seconds;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    double const limit = argc > 2 ? atof(argv[2]) : 2;
    static const char *const gpus[] = {"4090", "5090", "a100", "h100", "l4", "l40s", "h200", "b200"};
    static const char *const versions[] = {"0.8.5", "0.11.0", "0.19.1", "0.24.0", "0.28.0", "0.32.0"};
    static const char *const seqs[] = {"16", "64", "256", "1024"};
    static const char *const lengths[] = {"2048", "8192", "16384"};
    oomsight_error error;
    oomsight_data *data;
    oomsight_model *model;
    if (oomsight_data_open(NULL, &data, &error) || oomsight_model_open(argv[1], 0, &model, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 3;
    }
    unsigned long plans = 0, fits = 0, rounds = 0;
    double const start = now();
    double best = 1e9;
    while (now() - start < limit) {
        double const begun = now();
        for (size_t g = 0; g < 8; g++)
            for (size_t v = 0; v < 6; v++)
                for (size_t s = 0; s < 4; s++)
                    for (size_t l = 0; l < 3; l++) {
                        const char *command[] = {"vllm",  "serve",           argv[1],   "--max-num-seqs",
                                                 seqs[s], "--max-model-len", lengths[l]};
                        oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
                        params.data = data;
                        params.model = model;
                        params.command = command;
                        params.command_count = 7;
                        params.gpu = gpus[g];
                        params.engine_version = versions[v];
                        params.skip_fixes = 1;
                        oomsight_plan *plan;
                        if (oomsight_plan_create(&params, &plan, &error)) {
                            fprintf(stderr, "%s\n", error.text);
                            return 4;
                        }
                        fits += oomsight_plan_verdict(plan) == OOMSIGHT_VERDICT_FITS;
                        plans++;
                        oomsight_plan_free(plan);
                    }
        double const took = now() - begun;
        if (took < best) best = took;
        rounds++;
    }
    double const each = (now() - start) / (double)plans;
    double const config = config_seconds(argv[1]);
    printf("plan: %.0f a second (%.2f us each, %.2f in the best round, %lu of %lu fit); parsing config.json "
           "alone %.2f us: ratio %.3f\n",
           1 / each, each * 1e6, rounds ? best / (double)plans * (double)rounds * 1e6 : 0.0, fits, plans,
           config * 1e6, each / config);
    oomsight_model_close(model);
    oomsight_data_close(data);
    return 0;
}
