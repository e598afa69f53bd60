/* oomsight replay: what would other allocator settings have done. */
#include "cli.h"

int cmd_replay(cli_options *given)
{
    oomsight_replay_params params = OOMSIGHT_REPLAY_PARAMS_INIT;
    params.path = given->words[0];
    params.settings = given->settings;
    params.try_settings = given->try;
    params.try_settings_count = given->try_count;
    params.torch = given->torch;
    params.pool_backend = given->pool_backend;
    params.gpu_total_bytes = given->gpu_total.bytes;
    params.gpu_used_bytes = given->gpu_used.bytes;
    params.device = (unsigned)given->device.number;
    params.sweep_ratio = given->sweep.number;
    params.skip_what_if = given->no_what_if || given->events;
    params.find_smallest = given->smallest;

    oomsight_error error = {0};
    oomsight_replay *replay = NULL;
    char *text = NULL;
    if (oomsight_replay_create(&params, &replay, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_status const status = given->events
                                       ? oomsight_replay_render_events(replay, &text, &error)
                                       : oomsight_replay_render(replay, &given->render, &text, &error);
    int const oom = oomsight_replay_oom(replay);
    oomsight_replay_free(replay);
    int const code = output_give(given, status, text, &error);
    return code != EXIT_FITS ? code : oom ? EXIT_DOES_NOT_FIT : EXIT_FITS;
}
