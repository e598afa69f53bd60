/* oomsight check: the engine commands in deployment files, each planned against a declared GPU. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { PATHS_MAX = 4096 };

static const char help[] =
    "usage: oomsight check [options] FILE|DIR...\n\n"
    "Finds the commands that start vLLM in shell scripts, Dockerfiles, systemd units, compose files, "
    "Kubernetes\n"
    "manifests, Helm values and any other text, and plans each. A folder is walked. A file that names vLLM "
    "and is "
    "not\n"
    "understood is a warning, broken YAML an error. The GPU is read from node selectors, instance types and "
    "Slurm "
    "lines.\n\n"
    "  --gpu NAME[xN]      the device, for commands whose file declares none\n"
    "  --gpu-total SIZE    what it really shows; --gpu-used SIZE: held by others; --gpu-cc X.Y\n"
    "  --vllm VERSION      for commands whose image tag tells none\n"
    "  --models DIR        where the models lie that the files name (DIR/org/name or DIR/name)\n"
    "  --strict            exit 1 also when something only likely starts or was not understood\n"
    "  --offline           never ask the hub; --insecure: HF_TOKEN over http://, too\n"
    "  --json, --format text|json|github|sarif, --output FILE, --color WHEN, --explain, --data DIR\n\n"
    "A comment `# oomsight: gpu=A30x4 gpu-total=23.5GiB vllm=0.19.1` declares for what follows it,\n"
    "`# oomsight: ignore` leaves the next command out.\n\n"
    "Exit: 0 all start, 1 one does not, 2 wrong usage, 3 a file could not be read or a command not "
    "planned.\n";

static bool strict;

static int take_option(oomsight_check_params *params, int argc, char **argv, int *at)
{
    bool wrong = false;
    const char *value;
    if (strcmp(argv[*at], "--offline") == 0) return params->allow_hub = 0, ++*at, 1;
    if (strcmp(argv[*at], "--strict") == 0) return strict = true, ++*at, 1;
    if (take_insecure(argv[*at])) return ++*at, 1;
    if ((value = option_value("--gpu-total", argc, argv, at, &wrong)))
        return size_value("check", "--gpu-total", value, &params->gpu_total_bytes);
    if ((value = option_value("--gpu-used", argc, argv, at, &wrong)))
        return params->gpu_used_known = 1, size_value("check", "--gpu-used", value, &params->gpu_used_bytes);
    if ((value = capability_value(argc, argv, at, &wrong))) return params->compute_capability = value, 1;
    if ((value = option_value("--gpu", argc, argv, at, &wrong))) return params->gpu = value, 1;
    if ((value = option_value("--vllm", argc, argv, at, &wrong))) return params->engine_version = value, 1;
    if ((value = option_value("--models", argc, argv, at, &wrong))) return params->models_dir = value, 1;
    return wrong ? -1 : 0;
}

static int answer(const output_options *options, const oomsight_check *check)
{
    oomsight_error error = {0};
    char *text = NULL;
    if (oomsight_check_render(check, &options->render, &text, &error) != OOMSIGHT_OK)
        return fail_with(&error);
    int const code = output_write(options, text);
    oomsight_text_free(text);
    if (code != EXIT_FITS) return code;
    if (oomsight_check_failing(check)) return EXIT_DOES_NOT_FIT;
    if (strict && oomsight_check_doubtful(check)) return EXIT_DOES_NOT_FIT;
    return oomsight_check_unplanned(check) ? EXIT_INPUT : EXIT_FITS;
}

int cmd_check(int argc, char **argv)
{
    output_options options;
    output_options_init(&options);
    oomsight_check_params params = OOMSIGHT_CHECK_PARAMS_INIT;
    params.allow_hub = 1;
    static const char *paths[PATHS_MAX];
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            fputs(help, stdout);
            return 0;
        }
        int taken = output_options_take(&options, argc, argv, &at);
        if (taken == 0) taken = take_option(&params, argc, argv, &at);
        if (taken < 0) return EXIT_USAGE;
        if (taken > 0) continue;
        if (argv[at][0] == '-' || params.path_count == PATHS_MAX) {
            fprintf(stderr,
                    argv[at][0] == '-' ? "oomsight check: no option '%s'\n"
                                       : "oomsight check: too many files at '%s'\n",
                    argv[at]);
            return EXIT_USAGE;
        }
        paths[params.path_count++] = argv[at++];
    }
    if (params.path_count == 0) {
        fputs("oomsight check: which files? oomsight check --gpu 4090 compose.yaml deploy/*.yaml\n", stderr);
        return EXIT_USAGE;
    }
    output_options_settle(&options);

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_check *check = NULL;
    if (oomsight_data_open(options.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    params.data = data;
    params.paths = paths;
    int code;
    if (oomsight_check_create(&params, &check, &error) != OOMSIGHT_OK)
        code = fail_with(&error);
    else
        code = answer(&options, check);
    oomsight_check_free(check);
    oomsight_data_close(data);
    return code;
}
