/* Reads what another process wrote: a report of a dry run (oomsight.dryrun/1), or a point of a matrix (oomsight.matrix/1), whose fields
 * have the same names. */
#include "dryrun/dryrun.h"
#include "base/json.h"

static oos_u64 number_of(const json_t *object, const char *key)
{
    oos_u64 number = {0};
    number.known = oos_json_u64(object, key, &number.value);
    return number;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = NULL;
    return oos_json_str(object, key, &text) ? text : NULL;
}

static bool verdict_of(const char *word, oomsight_verdict *ret_verdict)
{
    static const char *const words[] = {[OOMSIGHT_VERDICT_FITS] = "fits",
                                        [OOMSIGHT_VERDICT_TIGHT] = "tight",
                                        [OOMSIGHT_VERDICT_FAILS] = "fails",
                                        [OOMSIGHT_VERDICT_REFUSED] = "refused",
                                        [OOMSIGHT_VERDICT_UNKNOWN] = "unknown"};
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret_verdict = (oomsight_verdict)i;
            return true;
        }
    return false;
}

bool oos_dryrun_report_read(oos_arena *arena, oos_view json, oos_dryrun_answer *ret_answer)
{
    json_t *root;
    oos_dryrun_answer answer = {.max_concurrency = -1};
    if (oos_json_load(arena, json, &root, NULL) != OOMSIGHT_OK ||
        !verdict_of(text_of(root, "verdict"), &answer.verdict))
        return false;
    const json_t *kv = json_object_get(root, "kv"), *child = json_object_get(root, "child");
    const char *likely = text_of(root, "likely");
    answer.engine_version = text_of(json_object_get(root, "engine"), "version");
    answer.phase = text_of(root, "phase");
    answer.cause = text_of(root, "cause");
    answer.why = text_of(root, "why");
    if (!answer.why) answer.why = text_of(child, "oom_message");
    if (!answer.why) answer.why = text_of(child, "refusal");
    answer.unknown_flag = text_of(root, "unknown_flag");
    answer.command = text_of(root, "command");
    answer.tried_bytes = number_of(root, "tried_bytes");
    answer.weights_bytes = number_of(root, "weights_bytes");
    answer.kv_tokens = number_of(kv, "tokens");
    answer.kv_available_bytes = number_of(kv, "available_bytes");
    oos_json_f64(kv, "max_concurrency", &answer.max_concurrency);
    answer.starts = answer.verdict == OOMSIGHT_VERDICT_FITS || (likely && strcmp(likely, "starts") == 0);
    answer.killed = answer.verdict == OOMSIGHT_VERDICT_UNKNOWN &&
                    (number_of(child, "exit").value > 128 || number_of(child, "dead_processes").value ||
                     number_of(child, "host_exhausted").value);
    *ret_answer = answer;
    return true;
}
