/* Records are looked at from the top and the first that fits a frame wins: functions before modules, special before general. */
#include "explain/traceback.h"
#include "base/json.h"
#include "explain/condition.h"

#include "facts/data.h"

typedef struct record {
    oos_view path;     /* somewhere in the module's path; empty: any */
    oos_view function; /* whole; empty: any */
    bool open;         /* the function's beginning */
    bool ending;
    oos_phase_set stages;
} record;

struct oos_frames {
    record *list;
    size_t count;
};

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
    const json_t *stages = json_object_get(object, "stages"), *word;
    if (oos_json_str(object, "stages", &named)) stages = json_object_get(sets, named);
    size_t at;
    json_array_foreach(stages, at, word)
    {
        oos_phase phase;
        if (!oos_phase_named(json_string_value(word) ? json_string_value(word) : "", &phase))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "frame '%s' '%s': no such stage", path, function);
        r.stages |= OOS_PHASE_BIT(phase);
    }
    *ret_record = r;
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

void oos_traceback_take(const oos_frames *frames, oos_traceback *stack, oos_view line)
{
    oos_view path, function;
    if (stack->closed || !frame_read(line, &path, &function)) return;
    for (size_t i = 0; i < frames->count; i++) {
        const record *r = &frames->list[i];
        if (!fits(r, path, function)) continue;
        stack->ending |= r->ending;
        if (!r->stages) return;
        if (stack->count == OOS_TRACEBACK_MAX) {
            memmove(stack->frames, stack->frames + 1, (OOS_TRACEBACK_MAX - 1) * sizeof *stack->frames);
            stack->count--;
        }
        stack->frames[stack->count++] = r->stages;
        return;
    }
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
