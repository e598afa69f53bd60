/* Commands of one file on one device: what each holds of it, and where one does not start beside another, how both do. */
#include "api/api.h"
#include "base/check.h"
#include "base/file.h"

/* Device `index` of those that a command sees; NULL: it sees fewer. */
static const char *device_token(oos_arena *arena, const oos_found *found, uint64_t index)
{
    if (!found->seen.known) return oos_arena_format(arena, "%llu", (unsigned long long)index);
    return index < found->seen.count ? oos_arena_copy(arena, oos_view_of(found->seen.names[index])) : NULL;
}

static oos_check_device *device_find(oomsight_check *check, uint32_t shares, const char *token)
{
    for (size_t i = 0; i < check->device_count; i++)
        if (check->devices[i].shares == shares && strcmp(check->devices[i].token, token) == 0)
            return &check->devices[i];
    return NULL;
}

const oos_check_device *oos_check_fullest(oomsight_check *check, const oos_found *found, uint64_t ranks)
{
    const oos_check_device *fullest = NULL;
    for (uint64_t i = 0; found->shares && i < ranks; i++) {
        const char *token = device_token(check->arena, found, i);
        const oos_check_device *device = token ? device_find(check, found->shares, token) : NULL;
        if (device && (!fullest || device->held_bytes > fullest->held_bytes)) fullest = device;
    }
    return fullest;
}

void oos_check_hold(oomsight_check *check, const oos_found *found, size_t at, uint64_t ranks, uint64_t bytes)
{
    const char *name = found->name ? found->name : "another command";
    for (uint64_t i = 0; found->shares && i < ranks; i++) {
        const char *token = device_token(check->arena, found, i);
        if (!token) return;
        oos_check_device *device = device_find(check, found->shares, token);
        if (!device) {
            if (!oos_check_grow(check->arena, (void **)&check->devices, check->device_count,
                                &check->device_room, sizeof *check->devices))
                return;
            device = &check->devices[check->device_count++];
            *device = (oos_check_device){.shares = found->shares, .token = token};
        }
        device->held_bytes = oos_add(device->held_bytes, bytes);
        if (bytes > device->most_bytes) {
            device->most_bytes = bytes;
            device->most_at = at;
        }
        if (!device->names || strlen(device->names) < 200)
            device->names = device->names ? oos_arena_format(check->arena, "%s, %s", device->names, name)
                                          : oos_arena_copy(check->arena, oos_view_of(name));
    }
}

/* ---- room for one that does not start beside another --------------------------------------------------------------- */

/* Two commands on one device that others hold `rest_bytes` of: the one that starts first, and the one that finds no room. */
typedef struct two {
    oomsight_check *check;
    const oomsight_check_params *params;
    const oos_found *first, *second;
    uint64_t rest_bytes;
} two;

/* A plan of the command with so much of its device taken. */
static const oos_checked_plan *planned(const two *of, const oos_found *found, uint64_t taken)
{
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    const char *problem = NULL;
    oos_check_params(of->check->arena, of->params, found, &params, &problem);
    if (problem) return NULL;
    params.gpu_used_bytes = oos_add(params.gpu_used_bytes, taken);
    params.gpu_used_known |= taken != 0;
    const oos_check_known *known = oos_check_plan(of->check, of->params, found, &params);
    return known ? known->plan : NULL;
}

/* What the command holds of its device by itself with so much taken, as it is or as is suggested for it; 0: nothing lets it start. */
static uint64_t held(const two *of, const oos_found *found, const oos_checked_plan *plan, uint64_t taken)
{
    uint64_t const others = oos_add(taken, of->params->gpu_used_bytes);
    if (plan && !plan->likely && plan->edited) {
        const char **words = OOS_NEW_ARRAY(of->check->arena, const char *, plan->edited_count + 1);
        oos_found changed = *found;
        for (size_t i = 0; words && i < plan->edited_count; i++) words[i] = plan->edited[i].word;
        changed.words = words;
        changed.count = plan->edited_count;
        plan = words ? planned(of, &changed, taken) : NULL;
    }
    return plan && plan->likely ? oos_sub(plan->held_bytes, others) : 0;
}

/* Whether both start with `room` left for the second: the first is changed so far that it starts beside that much, then the second is
 * planned beside what the first takes. */
static bool both_start(const two *of, uint64_t room, oos_checked *first, oos_checked *second)
{
    const oos_checked_plan *less = planned(of, of->first, oos_add(of->rest_bytes, room));
    if (!less || less->likely || !less->edited) return false;
    uint64_t const taken = held(of, of->first, less, of->rest_bytes);
    const oos_checked_plan *beside = taken ? planned(of, of->second, oos_add(of->rest_bytes, taken)) : NULL;
    if (!beside || !(beside->likely || beside->edited)) return false;
    first->mend = less;
    second->mend = beside;
    first->mate = second->found;
    second->mate = first->found;
    return true;
}

/* What is the second's of a device that both want nearly all of: by their weights, neither less than a quarter. */
static uint64_t part_of(const two *of, const oos_checked_plan *first, const oos_checked_plan *second)
{
    uint64_t const all = oos_sub(second->total_bytes, of->rest_bytes), quarter = all / 4;
    uint64_t const weights = oos_add(first->weights_bytes, second->weights_bytes);
    double const part = weights ? (double)second->weights_bytes / (double)weights : 0.5;
    return oos_max(quarter, oos_min((uint64_t)((double)all * part), all - quarter));
}

/* The second gets what it takes by itself, at most its part. An engine that takes a share of what is free starts behind it as it is. */
static void make_room(const two *of, oos_checked *first, oos_checked *second)
{
    const oos_checked_plan *alone = planned(of, of->second, of->rest_bytes);
    uint64_t const own = alone ? held(of, of->second, alone, of->rest_bytes) : 0;
    if (!own || both_start(of, oos_min(own, part_of(of, first->plan, alone)), first, second)) return;
    const oos_checked_plan *behind = planned(of, of->first, oos_add(of->rest_bytes, own));
    if (!behind || !behind->likely) return;
    second->mend = alone;
    second->mate = first->found;
    second->first = true;
}

static oos_checked *checked_at(oomsight_check *check, size_t from, size_t at)
{
    for (size_t i = from; i < check->count; i++)
        if (!check->list[i].doubt && check->list[i].at == at) return &check->list[i];
    return NULL;
}

/* A third command was planned next to what the first takes as it is: of more than two nothing is promised. */
static bool are_two(const oomsight_check *check, const oos_found *list, size_t from, uint32_t shares)
{
    size_t count = 0;
    for (size_t i = from; i < check->count; i++)
        count += !check->list[i].doubt && list[check->list[i].at].shares == shares;
    return count == 2;
}

void oos_check_room(oomsight_check *check, const oomsight_check_params *params, const oos_found *list,
                    size_t from)
{
    for (size_t i = from; i < check->count; i++) {
        oos_checked *second = &check->list[i];
        const oos_checked_plan *plan = second->plan;
        if (second->doubt || !plan || plan->likely || !second->beside || second->host_needs_bytes) continue;
        const oos_found *found = &list[second->at];
        const oos_check_device *device = oos_check_fullest(check, found, plan->ranks);
        oos_checked *first = device ? checked_at(check, from, device->most_at) : NULL;
        if (!first || first->mend || first >= second || !are_two(check, list, from, found->shares)) continue;
        two const of = {check, params, &list[first->at], found,
                        oos_sub(second->beside_bytes, device->most_bytes)};
        make_room(&of, first, second);
    }
}
