/* Will it start? One plan, its worst moments and the flags that help.   plan MODEL GPU [vllm flags...] */
#include <oomsight/oomsight.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    oomsight_error error = {OOMSIGHT_OK, 0, "", "", ""};
    oomsight_data *data = NULL;
    oomsight_plan *plan = NULL;
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    const char **command;
    size_t i;
    if (count < 3) return 2;
    command = malloc((size_t)count * sizeof *command);
    if (!command) return 4;
    command[0] = "vllm";
    command[1] = "serve";
    command[2] = words[1];
    for (i = 3; i < (size_t)count; i++) command[i] = words[i];

    if (oomsight_data_open(NULL, &data, &error) != OOMSIGHT_OK) goto failed;
    params.data = data;
    params.gpu = words[2];
    params.command = command;
    params.command_count = (size_t)count;
    if (oomsight_plan_create(&params, &plan, &error) != OOMSIGHT_OK) goto failed;
    for (i = 0; i < oomsight_plan_moment_count(plan); i++) {
        oomsight_moment moment = {sizeof moment, NULL, 0, 0, 0, 0, 0, 0};
        if (oomsight_plan_moment(plan, i, &moment))
            printf("%-24s %6.2f of %6.2f GiB\n", moment.phase, (double)moment.peak_bytes / 0x1p30,
                   (double)moment.limit_bytes / 0x1p30);
    }
    if (oomsight_plan_phase(plan))
        printf("fails in %s; add: %s\n", oomsight_plan_phase(plan),
               oomsight_plan_best_flags(plan) ? oomsight_plan_best_flags(plan) : "nothing helps");
    else
        printf("%llu tokens of KV cache\n", (unsigned long long)oomsight_plan_kv_tokens(plan));
    oomsight_plan_free(plan);
    oomsight_data_close(data);
    free(command);
    return 0;
failed:
    fprintf(stderr, "%s\n", error.text);
    oomsight_data_close(data);
    free(command);
    return 1;
}
