/* Words and numbers that the forms of the replay report share. */
#include "report/report.h"

#include <stdio.h>

oos_size_text oos_size_of(uint64_t bytes)
{
    oos_size_text t;
    oos_size_print(bytes, t.text, sizeof t.text);
    return t;
}

oos_size_text oos_outcome_word(const oos_outcome *outcome, bool refused)
{
    oos_size_text t = {"ok"};
    if (refused)
        snprintf(t.text, sizeof t.text, "refused");
    else if (outcome->oom)
        snprintf(t.text, sizeof t.text, "OOM at event %zu", outcome->first_oom);
    return t;
}

oos_size_text oos_torch_word(const oos_analysis *a)
{
    oos_size_text t;
    oos_version const torch = a->scenario.torch ? a->scenario.torch : a->trace->torch;
    oos_version_print(torch ? torch : OOS_TORCH_DEFAULT, t.text, sizeof t.text);
    return t;
}

uint64_t oos_device_total(const oos_analysis *a, const oos_scenario *scenario, bool *ret_known)
{
    *ret_known = scenario->total_bytes.known || a->trace->total_bytes.known;
    return oos_u64_or(scenario->total_bytes, oos_u64_or(a->trace->total_bytes, OOS_UNKNOWN_DEVICE_BYTES));
}
