/* Four tables. What was recorded while real engines ran is known by module and function (data/explain/recorded.json, made by
 * tools/record_frames.py), and so is what calls what in the sources of every release (harvested.json, tools/harvest_frames.py;
 * without a module it holds for any file of an engine). The records by hand (frames.json) are looked at from the top and the
 * first that fits a frame wins: functions before modules, special before general. Where the last two speak, what both allow;
 * what was recorded is added. Lines of the sources that log a traceback are known by their numbers (loggers.json,
 * tools/harvest_loggers.py). */
#include "facts/facts.h"
#include "explain/explain.h"
#include "base/ascii.h"
#include "base/json.h"

#include <stdlib.h>

typedef struct record {
    oos_view path;     /* somewhere in the module's path; empty: any */
    oos_view function; /* whole; empty: any */
    bool open;         /* the function's beginning */
    bool ending;
    bool step;       /* a step of the engine itself: what runs inside it runs in these stages */
    bool dispatches; /* passes a worker's method on, by its name */
    oos_phase_set stages;
    oos_phase_set dispatched; /* of a worker's method that is called so */
} record;

typedef struct seen {
    oos_view function, module; /* an empty module is any of an engine's */
    oos_phase_set stages;
} seen;

typedef struct table {
    seen *list; /* sorted by function */
    size_t count;
} table;

typedef struct printed {
    size_t signal;
    oos_phase_set stages;
} printed;

struct oos_frames {
    record *list;
    size_t count;
    printed *lines;
    size_t line_count;
    table recorded, harvested;
    table loggers; /* by file and, instead of a function, line */
};

oomsight_status oos_stages_read(const json_t *words, oos_phase_set *ret_stages, oomsight_error *reterr)
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
    oos_json_bool(object, "step", &r.step);
    oos_json_bool(object, "dispatches", &r.dispatches);
    size_t const len = strlen(function);
    r.open = len && function[len - 1] == '*';
    r.path = oos_view_of(path);
    r.function = (oos_view){function, len - r.open};
    const json_t *stages = json_object_get(object, "stages");
    if (oos_json_str(object, "stages", &named)) stages = json_object_get(sets, named);
    OOS_TRY(oos_stages_read(stages, &r.stages, reterr));
    if (oos_json_str(object, "dispatched", &named))
        OOS_TRY(oos_stages_read(json_object_get(sets, named), &r.dispatched, reterr));
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

/* The words of `text`, added to `all` if there is one; returns their number. */
static size_t words_take(const char *text, const char *module, oos_phase_set stages, table *all)
{
    size_t count = 0;
    for (size_t len; *text; text += len + (text[len] == ' ')) {
        len = strcspn(text, " ");
        if (all) all->list[all->count++] = (seen){{text, len}, oos_view_of(module), stages};
        count++;
    }
    return count;
}

/* {"module": {"number of a set": "function function ..."}} */
static oomsight_status table_load(oos_arena *arena, const char *data_dir, const char *path, table *ret_table,
                                  oomsight_error *reterr)
{
    json_t *root;
    OOS_TRY(oos_data_json(arena, data_dir, path, &root, reterr));
    json_t *modules = json_object_get(root, "modules"), *functions, *names;
    const json_t *sets = json_object_get(root, "sets");
    const char *module, *number;
    size_t count = 0;
    table all = {0};
    json_object_foreach(modules, module, functions) json_object_foreach(functions, number, names)
    {
        if (!json_is_string(names))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "functions of '%s' are no words", module);
        count += words_take(json_string_value(names), module, 0, NULL);
    }
    all.list = OOS_NEW_ARRAY(arena, seen, count + 1);
    if (!all.list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the frames");
    json_object_foreach(modules, module, functions) json_object_foreach(functions, number, names)
    {
        oos_phase_set stages;
        OOS_TRY(oos_stages_read(json_array_get(sets, strtoul(number, NULL, 10)), &stages, reterr));
        words_take(json_string_value(names), module, stages, &all);
    }
    qsort(all.list, all.count, sizeof *all.list, by_function);
    *ret_table = all;
    return OOMSIGHT_OK;
}

static oomsight_status lines_load(oos_arena *arena, const oos_signals *signals, const json_t *root,
                                  oos_frames *frames, oomsight_error *reterr)
{
    const json_t *list = json_object_get(root, "lines"), *sets = json_object_get(root, "sets");
    frames->line_count = signals ? json_array_size(list) : 0;
    frames->lines = OOS_NEW_ARRAY(arena, printed, frames->line_count + 1);
    if (!frames->lines) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the frames");
    for (size_t i = 0; i < frames->line_count; i++) {
        const json_t *object = json_array_get(list, i), *stages = json_object_get(object, "stages");
        const char *id = "", *set;
        oos_json_str(object, "signal", &id);
        if (oos_json_str(object, "stages", &set)) stages = json_object_get(sets, set);
        frames->lines[i].signal = oos_signals_find(signals, id);
        if (frames->lines[i].signal == SIZE_MAX)
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "a frame of '%s', which is no signal", id);
        OOS_TRY(oos_stages_read(stages, &frames->lines[i].stages, reterr));
    }
    return OOMSIGHT_OK;
}

bool oos_frames_line(const oos_frames *frames, size_t at, size_t *ret_signal, oos_phase_set *ret_stages)
{
    if (at >= frames->line_count) return false;
    *ret_signal = frames->lines[at].signal;
    *ret_stages = frames->lines[at].stages;
    return true;
}

oomsight_status oos_frames_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                const oos_frames **ret_frames, oomsight_error *reterr)
{
    json_t *root;
    OOS_TRY(oos_data_json(arena, data_dir, "explain/frames.json", &root, reterr));
    const json_t *list = json_object_get(root, "frames");
    oos_frames *frames = OOS_NEW(arena, oos_frames);
    if (frames) frames->list = OOS_NEW_ARRAY(arena, record, json_array_size(list) + 1);
    if (!frames || !frames->list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the frames");
    for (size_t i = 0; i < json_array_size(list); i++)
        OOS_TRY(
            record_read(json_array_get(list, i), json_object_get(root, "sets"), &frames->list[i], reterr));
    frames->count = json_array_size(list);
    OOS_TRY(lines_load(arena, signals, root, frames, reterr));
    OOS_TRY(table_load(arena, data_dir, "explain/recorded.json", &frames->recorded, reterr));
    OOS_TRY(table_load(arena, data_dir, "explain/harvested.json", &frames->harvested, reterr));
    OOS_TRY(table_load(arena, data_dir, "explain/loggers.json", &frames->loggers, reterr));
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

static const char *find(oos_view text, const char *word)
{
    return text.len ? memmem(text.ptr, text.len, word, strlen(word)) : NULL;
}

static oos_view behind(oos_view text, const char *at, size_t len)
{
    return oos_view_slice(text, (size_t)(at - text.ptr) + len, SIZE_MAX);
}

static bool is_name(char c)
{
    return oos_is_alnum(c) || c == '_' || c == '.' || c == '<' || c == '>';
}

/* The name that `text` begins with: of `Class.function(self)` the function. */
static oos_view name_read(oos_view text)
{
    while (text.len && strchr(" '*", text.ptr[0])) text = oos_view_slice(text, 1, SIZE_MAX);
    size_t len = 0, start = 0;
    while (len < text.len && is_name(text.ptr[len])) len++;
    while (len && text.ptr[len - 1] == '.') len--;
    for (size_t i = 0; i + 1 < len; i++)
        if (text.ptr[i] == '.') start = i + 1;
    return oos_view_slice(text, start, len - start);
}

static oos_view first_line(oos_view text)
{
    if (text.len && text.ptr[0] == '\r') text = oos_view_slice(text, 1, SIZE_MAX);
    if (text.len && text.ptr[0] == '\n') text = oos_view_slice(text, 1, SIZE_MAX);
    const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
    return end ? oos_view_slice(text, 0, (size_t)(end - text.ptr)) : text;
}

/* `File "path", line N, in function`, as log/normal.c writes every frame. The function may be missing or cut off. */
static bool frame_read(oos_view line, oos_view *ret_path, oos_view *ret_function)
{
    static const char file[] = "File \"", number[] = "\", line ";
    const char *at = find(line, file), *end = at ? find(line, number) : NULL;
    if (!end || end < at) return false;
    oos_view const rest = behind(line, at, sizeof file - 1);
    *ret_path = oos_view_slice(rest, 0, (size_t)(end - rest.ptr));
    const char *in = find(behind(rest, end, 0), " in ");
    *ret_function = in ? name_read(behind(rest, in, 4)) : (oos_view){0};
    return true;
}

/* A worker's method that the engine says has failed: what stands at the bottom of its stack. */
static oos_view method_read(oos_view line)
{
    static const char *const before[] = {"xecuting method ", "rocessing method ", "nvocation of ",
                                         "Call to "};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const char *at = find(line, before[i]);
        if (at && (i < 2 || find(behind(line, at, 0), " method failed")))
            return name_read(behind(line, at, strlen(before[i])));
    }
    return (oos_view){0};
}

/* The module as it is named in a package stands at the end of its path, and the path may end in a quote. */
static bool is_module(oos_view path, oos_view module)
{
    while (path.len && (path.ptr[path.len - 1] == '"' || path.ptr[path.len - 1] == '\'')) path.len--;
    return path.len >= module.len && memcmp(path.ptr + path.len - module.len, module.ptr, module.len) == 0 &&
           (path.len == module.len || path.ptr[path.len - module.len - 1] == '/' ||
            path.ptr[path.len - module.len - 1] == '"');
}

/* A file of an engine, or of a program that builds on one: names of functions mean there what they mean in the engine. */
static bool is_engines(oos_view path)
{
    static const char *const words[] = {
        "worker",
        "runner",
        "scheduler",
        "executor",
#define OTHER_FRAME(word) word,
#include "facts/engine_other.def"
    };
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (find(path, oos_engine_list[i]->name)) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (find(path, words[i])) return true;
    return path.len == 0;
}

/* A file of a model or of what it computes with, in a function that is not its construction. */
static bool is_model(oos_view path, oos_view function)
{
    static const char *const words[] = {"/models/", "/layers/", "attention/", "_custom_ops", "flashinfer/"};
    if (oos_view_is(function, "__init__")) return false;
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        for (size_t k = 0; k < 2; k++)
            if (oos_engine_list[i]->computes[k] && find(path, oos_engine_list[i]->computes[k])) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (find(path, words[i])) return true;
    return false;
}

/* The stages in which a function of a module was seen; 0: never. */
static oos_phase_set seen_stages(const table *all, oos_view path, oos_view function)
{
    seen const key = {function, {0}, 0};
    size_t low = 0, high = all->count;
    oos_phase_set anywhere = 0;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (by_function(&all->list[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < all->count && by_function(&all->list[low], &key) == 0; low++) {
        if (!all->list[low].module.len)
            anywhere = all->list[low].stages;
        else if (is_module(path, all->list[low].module))
            return all->list[low].stages;
    }
    return is_engines(path) ? anywhere : 0;
}

static oos_phase_set common(oos_phase_set first, oos_phase_set second)
{
    return first & second ? first & second : first ? first : second;
}

/* The oldest is forgotten, but not what it bounds. */
static void push(oos_traceback *stack, oos_phase_set stages, oos_phase_set bound)
{
    if (stack->count == OOS_TRACEBACK_MAX) {
        oos_phase_set const oldest = common(stack->bounds[1], stack->bounds[0]);
        memmove(stack->frames, stack->frames + 1, (OOS_TRACEBACK_MAX - 1) * sizeof *stack->frames);
        memmove(stack->bounds, stack->bounds + 1, (OOS_TRACEBACK_MAX - 1) * sizeof *stack->bounds);
        stack->bounds[0] = oldest;
        stack->count--;
    }
    stack->frames[stack->count] = stages;
    stack->bounds[stack->count++] = bound;
}

/* Markdown prints `__init__` as bold "init"; pasted from there the underscores are gone. */
static oos_view underscored(oos_view function)
{
    static const char *const words[] = {"__init__", "__call__", "__enter__",
                                        "__exit__", "__new__",  "__del__"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (function.len + 4 == strlen(words[i]) && memcmp(words[i] + 2, function.ptr, function.len) == 0)
            return oos_view_of(words[i]);
    return function;
}

static bool is_wrapper(oos_view path)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (oos_engine_list[i]->wrapper && find(path, oos_engine_list[i]->wrapper)) return true;
    return false;
}

static oos_phase_set stages_of(const oos_frames *frames, oos_traceback *stack, oos_view path,
                               oos_view function, oos_phase_set *ret_bound)
{
    function = underscored(function);
    oos_phase_set by_hand = 0;
    bool const dispatched = stack->dispatched;
    if (!find(path, "torch/") && !is_wrapper(path)) stack->dispatched = false;
    for (size_t i = 0; i < frames->count; i++) {
        const record *r = &frames->list[i];
        if (!fits(r, path, function)) continue;
        stack->ending |= r->ending;
        stack->dispatched |= r->dispatches;
        by_hand = r->stages;
        if (dispatched && r->dispatched)
            *ret_bound = r->dispatched;
        else if (r->step)
            *ret_bound = r->stages;
        break;
    }
    if (!function.len) return by_hand;
    /* What ran in a stage can run there; what did not run may still: recorded starts widen, they do not narrow. */
    return common(by_hand, seen_stages(&frames->harvested, path, function)) |
           seen_stages(&frames->recorded, path, function);
}

/* `self.model_runner.profile_run()`, `self.collective_rpc("load_model")`: the first name of a call, or in quotes, that belongs to
 * some stages. */
static oos_phase_set code_stages(const oos_frames *frames, oos_view code)
{
    oos_traceback aside = {0};
    oos_phase_set bound;
    if (find(code, "File \"") || find(code, "Error")) return 0;
    for (size_t at = 0, end; at < code.len; at = end + 1) {
        for (end = at; end < code.len && is_name(code.ptr[end]);) end++;
        bool const called = end < code.len && strchr("(\"'", code.ptr[end]);
        if (end == at || !called) continue;
        oos_phase_set const stages =
            stages_of(frames, &aside, (oos_view){0}, name_read(oos_view_slice(code, at, end - at)), &bound);
        if (stages) return stages;
    }
    return 0;
}

void oos_traceback_take(const oos_frames *frames, oos_traceback *stack, oos_view line, oos_view after)
{
    oos_view path, function;
    oos_phase_set bound = 0;
    oos_view const method = method_read(line);
    if (method.len) {
        oos_phase_set const stages = stages_of(frames, stack, (oos_view){0}, method, &bound);
        if (stages) stack->method = stages;
    }
    oos_view rest = line;
    if (stack->closed) return;
    /* A paste that lost its line ends holds many frames in a line. */
    for (const char *next; rest.len; rest = next ? behind(rest, next, 0) : (oos_view){0}) {
        const char *file = find(rest, "File \"");
        next = file ? find(behind(rest, file, 1), "File \"") : NULL;
        oos_view const one = next ? oos_view_slice(rest, 0, (size_t)(next - rest.ptr)) : rest;
        if (!frame_read(one, &path, &function)) continue;
        bound = 0;
        oos_phase_set const stages = stages_of(frames, stack, path, function, &bound);
        if (stages) push(stack, stages, bound);
        stack->forward |= is_model(path, function);
        if (is_engines(path)) stack->worker = find(path, "/worker/") != NULL;
        stack->callee = is_engines(path) ? code_stages(frames, first_line(after)) : 0;
    }
}

void oos_traceback_logger(const oos_frames *frames, oos_traceback *stack, oos_view line)
{
    const char *at = find(line, ".py:");
    if (!at) return;
    size_t const end = (size_t)(at - line.ptr) + 3;
    size_t start = end, last = end + 1;
    while (start && (oos_is_alnum(line.ptr[start - 1]) || strchr("._/", line.ptr[start - 1]))) start--;
    while (last < line.len && oos_is_digit(line.ptr[last])) last++;
    if (last == line.len || line.ptr[last] != ']') return;
    oos_view const file = oos_view_slice(line, start, end - start),
                   number = oos_view_slice(line, end + 1, last - end - 1);
    stack->logged = common(stack->logged, seen_stages(&frames->loggers, file, number));
}

/* Of sets in the order of a stack, from the innermost: each narrows, unless it would leave nothing. */
static oos_phase_set narrowed(oos_phase_set left, const oos_phase_set *sets, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (sets[i]) left = common(left, sets[i]);
    return left;
}

oos_phase_set oos_traceback_stages(const oos_traceback *stack)
{
    oos_phase_set const running = narrowed(0, stack->bounds, stack->count);
    /* A number with no frame beside it may be that of another build. */
    oos_phase_set const logged = stack->count || stack->callee ? stack->logged : 0;
    oos_phase_set left = common(common(running, logged), stack->callee);
    left = common(narrowed(left, stack->frames, stack->count), stack->method);
    /* What a served step runs in the worker itself is neither the model nor the sampler. */
    oos_phase_set const apart =
        OOS_PHASE_BIT(OOS_PHASE_RUNTIME_PREFILL) | OOS_PHASE_BIT(OOS_PHASE_RUNTIME_SAMPLER);
    bool const own = stack->worker && stack->closed && !stack->forward;
    return own ? common(left, left & ~apart) : left;
}
