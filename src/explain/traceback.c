/* Two tables. What was recorded while real engines ran is known by module and function (data/explain/recorded.json, made by
 * tools/record_frames.py); the records by hand (data/explain/frames.json) are looked at from the top and the first that fits a
 * frame wins: functions before modules, special before general. Where both speak, what both allow. */
#include "explain/traceback.h"
#include "base/json.h"
#include "explain/condition.h"

#include "facts/data.h"

#include <stdlib.h>

typedef struct record {
    oos_view path;     /* somewhere in the module's path; empty: any */
    oos_view function; /* whole; empty: any */
    bool open;         /* the function's beginning */
    bool ending;
    oos_phase_set stages;
} record;

typedef struct seen {
    oos_view function, module;
    oos_phase_set stages;
} seen;

struct oos_frames {
    record *list;
    size_t count;
    seen *recorded; /* sorted by function */
    size_t recorded_count;
};

static oomsight_status stages_read(const json_t *words, oos_phase_set *ret_stages, oomsight_error *reterr)
{
    const json_t *word;
    size_t at;
    oos_phase_set stages = 0;
    json_array_foreach(words, at, word)
    {
        oos_phase phase;
        const char *text = json_string_value(word);
        if (!text || !oos_phase_named(text, &phase))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "no such stage: '%s'", text ? text : "");
        stages |= OOS_PHASE_BIT(phase);
    }
    *ret_stages = stages;
    return OOMSIGHT_OK;
}

static oomsight_status record_read(const json_t *object, const json_t *sets, record *ret_record,
                                   oomsight_error *reterr)
{
    const char *path = "", *function = "", *named;
    record r = {0};
    oos_json_str(object, "path", &path);
    oos_json_str(object, "function", &function);
    oos_json_bool(object, "ending", &r.ending);
    size_t const len = strlen(function);
    r.open = len && function[len - 1] == '*';
    r.path = oos_view_of(path);
    r.function = (oos_view){function, len - r.open};
    const json_t *stages = json_object_get(object, "stages");
    if (oos_json_str(object, "stages", &named)) stages = json_object_get(sets, named);
    OOS_TRY(stages_read(stages, &r.stages, reterr));
    *ret_record = r;
    return OOMSIGHT_OK;
}

static int by_function(const void *a, const void *b)
{
    const seen *left = a, *right = b;
    size_t const len = left->function.len < right->function.len ? left->function.len : right->function.len;
    int const order = memcmp(left->function.ptr, right->function.ptr, len);
    if (order) return order;
    return (left->function.len > right->function.len) - (left->function.len < right->function.len);
}

static oomsight_status recorded_load(oos_arena *arena, const char *data_dir, oos_frames *frames,
                                     oomsight_error *reterr)
{
    oos_view bytes;
    json_t *root;
    OOS_TRY(oos_data_read(arena, data_dir, "explain/recorded.json", &bytes, reterr));
    OOS_TRY(oos_json_load(arena, bytes, &root, reterr));
    json_t *modules = json_object_get(root, "modules"), *functions, *number;
    const json_t *sets = json_object_get(root, "sets");
    const char *module, *function;
    size_t count = 0;
    json_object_foreach(modules, module, functions) count += json_object_size(functions);
    frames->recorded = OOS_NEW_ARRAY(arena, seen, count + 1);
    if (!frames->recorded) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the frames");
    json_object_foreach(modules, module, functions)
    {
        json_object_foreach(functions, function, number)
        {
            seen one = {oos_view_of(function), oos_view_of(module), 0};
            json_int_t const set = json_integer_value(number);
            OOS_TRY(stages_read(json_array_get(sets, set < 0 ? SIZE_MAX : (size_t)set), &one.stages, reterr));
            frames->recorded[frames->recorded_count++] = one;
        }
    }
    qsort(frames->recorded, count, sizeof *frames->recorded, by_function);
    return OOMSIGHT_OK;
}

oomsight_status oos_frames_load(oos_arena *arena, const char *data_dir, const oos_frames **ret_frames,
                                oomsight_error *reterr)
{
    oos_view bytes;
    json_t *root;
    OOS_TRY(oos_data_read(arena, data_dir, "explain/frames.json", &bytes, reterr));
    OOS_TRY(oos_json_load(arena, bytes, &root, reterr));
    const json_t *list = json_object_get(root, "frames");
    oos_frames *frames = OOS_NEW(arena, oos_frames);
    if (frames) frames->list = OOS_NEW_ARRAY(arena, record, json_array_size(list) + 1);
    if (!frames || !frames->list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the frames");
    for (size_t i = 0; i < json_array_size(list); i++)
        OOS_TRY(
            record_read(json_array_get(list, i), json_object_get(root, "sets"), &frames->list[i], reterr));
    frames->count = json_array_size(list);
    OOS_TRY(recorded_load(arena, data_dir, frames, reterr));
    *ret_frames = frames;
    return OOMSIGHT_OK;
}

static bool fits(const record *r, oos_view path, oos_view function)
{
    if (r->function.len && (function.len < r->function.len || (!r->open && function.len != r->function.len) ||
                            memcmp(function.ptr, r->function.ptr, r->function.len) != 0))
        return false;
    return !r->path.len || (path.len && memmem(path.ptr, path.len, r->path.ptr, r->path.len));
}

/* `File "path", line N, in function`; either quote, any indentation, the function may be cut off. */
static bool frame_read(oos_view line, oos_view *ret_path, oos_view *ret_function)
{
    static const char file[] = "File ", in[] = ", in ";
    const char *at = line.len ? memmem(line.ptr, line.len, file, sizeof file - 1) : NULL;
    if (!at) return false;
    oos_view rest = oos_view_slice(line, (size_t)(at - line.ptr) + sizeof file - 1, SIZE_MAX);
    const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
    *ret_path = oos_view_slice(rest, 0, comma ? (size_t)(comma - rest.ptr) : rest.len);
    *ret_function = (oos_view){0};
    const char *name = rest.len ? memmem(rest.ptr, rest.len, in, sizeof in - 1) : NULL;
    if (name) {
        *ret_function = oos_view_slice(rest, (size_t)(name - rest.ptr) + sizeof in - 1, SIZE_MAX);
        for (size_t i = 0; i < ret_function->len; i++)
            if (ret_function->ptr[i] == ' ' || ret_function->ptr[i] == '(') ret_function->len = i;
    }
    return memmem(ret_path->ptr, ret_path->len, ".py", 3) != NULL;
}

/* The module as it is named in a package stands at the end of its path, and the path may end in a quote. */
static bool is_module(oos_view path, oos_view module)
{
    while (path.len && (path.ptr[path.len - 1] == '"' || path.ptr[path.len - 1] == '\'')) path.len--;
    return path.len >= module.len && memcmp(path.ptr + path.len - module.len, module.ptr, module.len) == 0 &&
           (path.len == module.len || path.ptr[path.len - module.len - 1] == '/' ||
            path.ptr[path.len - module.len - 1] == '"');
}

/* The stages in which a function of a module was seen; 0: never. */
static oos_phase_set seen_stages(const oos_frames *frames, oos_view path, oos_view function)
{
    seen const key = {function, {0}, 0};
    size_t low = 0, high = frames->recorded_count;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (by_function(&frames->recorded[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < frames->recorded_count && by_function(&frames->recorded[low], &key) == 0; low++)
        if (is_module(path, frames->recorded[low].module)) return frames->recorded[low].stages;
    return 0;
}

static void push(oos_traceback *stack, oos_phase_set stages)
{
    if (stack->count == OOS_TRACEBACK_MAX) {
        memmove(stack->frames, stack->frames + 1, (OOS_TRACEBACK_MAX - 1) * sizeof *stack->frames);
        stack->count--;
    }
    stack->frames[stack->count++] = stages;
}

void oos_traceback_take(const oos_frames *frames, oos_traceback *stack, oos_view line)
{
    oos_view path, function;
    if (stack->closed || !frame_read(line, &path, &function)) return;
    oos_phase_set const recorded = function.len ? seen_stages(frames, path, function) : 0;
    oos_phase_set by_hand = 0;
    for (size_t i = 0; i < frames->count; i++) {
        const record *r = &frames->list[i];
        if (!fits(r, path, function)) continue;
        stack->ending |= r->ending;
        by_hand = r->stages;
        break;
    }
    oos_phase_set const both = recorded & by_hand;
    oos_phase_set const stages = both ? both : recorded ? recorded : by_hand;
    if (stages) push(stack, stages);
}

oos_phase_set oos_traceback_stages(const oos_traceback *stack)
{
    oos_phase_set left = 0;
    for (size_t i = stack->count; i-- > 0;)
        if (!left)
            left = stack->frames[i];
        else if (left & stack->frames[i])
            left &= stack->frames[i];
    return left;
}
