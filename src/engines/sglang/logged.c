/* `server_args={...}` and `server_args=ServerArgs(...)` of a log: every field, most of them defaults. Those that move memory and are no
 * default are the command. The engine prints what it has resolved, so its fraction and its chunk are given here. */
#include "base/json.h"
#include "command/command.h"
#include "engines/sglang/sglang.h"

#include <stdio.h>
#include <string.h>

enum { LOGGED_WORDS_MAX = 128, FIELDS_MISSING_MAX = 8 };

typedef struct reading {
    oos_arena *arena;
    const oos_flag_table *flags;
    bool *printed; /* per flag of the table */
    const char **words;
    size_t count;
    const char *model;
    bool failed;
} reading;

static void add(reading *r, const char *word)
{
    const char *copy = r->count < LOGGED_WORDS_MAX ? oos_arena_copy(r->arena, oos_view_of(word)) : NULL;
    if (copy)
        r->words[r->count++] = copy;
    else
        r->failed = true;
}

static void add_flag(reading *r, const char *flag, const char *value)
{
    add(r, flag);
    if (value) add(r, value);
}

/* [1, 2, 4] as words of their own. */
static void add_list(reading *r, const char *flag, const char *value)
{
    char word[64];
    size_t len = 0;
    if (strcmp(value, "[]") == 0) return;
    add(r, flag);
    for (const char *at = value + 1; *at; at++) {
        bool const ends = *at == ',' || *at == ']';
        if (!ends && *at != ' ' && *at != '"' && len + 1 < sizeof word) word[len++] = *at;
        if (!ends) continue;
        word[len] = '\0';
        if (len) add(r, word);
        len = 0;
    }
}

/* What the engine made of all flags of graphs: {"decode": {"backend": "full", "max_bs": 32, ...}, "prefill": {...}}. */
static void add_graphs(reading *r, const char *value)
{
    static const char *const flags[][3] = {
        {"decode", "--cuda-graph-backend-decode", "--cuda-graph-max-bs-decode"},
        {"prefill", "--cuda-graph-backend-prefill", "--cuda-graph-max-bs-prefill"}};
    json_t *root;
    if (oos_json_load(r->arena, oos_view_of(value), &root, NULL) != OOMSIGHT_OK) return;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const json_t *of = json_object_get(root, flags[i][0]);
        const char *backend = json_string_value(json_object_get(of, "backend"));
        json_int_t const most = json_integer_value(json_object_get(of, "max_bs"));
        char number[24];
        if (backend && strcmp(backend, "disabled") == 0)
            add_flag(r, flags[i][1], backend);
        else if (most > 0) {
            snprintf(number, sizeof number, "%lld", (long long)most);
            add_flag(r, flags[i][2], number);
        }
    }
}

static bool is_graphs(const oos_flag_record *record)
{
    return strstr(record->dest, "cuda_graph_max_bs") || strstr(record->dest, "cuda_graph_backend");
}

static void take(reading *r, const oos_logged *list, const oos_flag_record *record, bool configured)
{
    const oos_flag_form *form = &record->forms[record->form_count - 1];
    const char *value = list->value;
    if (strcmp(record->dest, "model_path") == 0) {
        r->model = oos_arena_copy(r->arena, oos_view_of(value));
        return;
    }
    if (!record->memory || strcmp(value, "None") == 0 || strcmp(value, "False") == 0 || !*value) return;
    if (strcmp(record->dest, "cuda_graph_config") == 0)
        add_graphs(r, value);
    else if (is_graphs(record) && configured)
        return; /* said again, resolved */
    else if (strcmp(value, "True") == 0)
        add(r, record->name);
    else if (form->kind == OOS_FLAG_KIND_LIST && list->nested)
        add_list(r, record->name, value);
    else if (!form->preset || strcmp(form->preset, value) != 0)
        add_flag(r, record->name, value);
}

/* A field may have had several flags: the last one that there was. NULL: no flag, or it was printed before. */
static const oos_flag_record *field_of(reading *r, const char *key)
{
    const oos_flag_record *found = NULL;
    for (size_t i = 0; i < r->flags->count; i++) {
        const oos_flag_record *record = &r->flags->list[i];
        if (strcmp(record->dest, key) != 0) continue;
        if (r->printed[i]) return NULL;
        r->printed[i] = true;
        if (!found || record->until > found->until) found = record;
    }
    return found;
}

/* The release whose fields are all there, the newest of several; 0: of every release that was read some are not. */
static oos_version release_of(const reading *r)
{
    oos_version best = 0;
    size_t least = FIELDS_MISSING_MAX + 1;
    for (size_t v = 0; v < r->flags->version_count; v++) {
        oos_version const version = r->flags->versions[v];
        size_t missing = 0;
        for (size_t i = 0; i < r->flags->count; i++) {
            const oos_flag_record *record = &r->flags->list[i];
            missing += record->since <= version && version <= record->until && !r->printed[i];
        }
        if (missing > least || missing > FIELDS_MISSING_MAX) continue;
        least = missing;
        best = version;
    }
    return best;
}

bool oos_sglang_logged(oos_arena *arena, const oos_flag_table *flags, const char *text,
                       oos_logged_command *ret_command)
{
    reading r = {.arena = arena,
                 .flags = flags,
                 .printed = OOS_NEW_ARRAY(arena, bool, flags->count ? flags->count : 1),
                 .words = OOS_NEW_ARRAY(arena, const char *, LOGGED_WORDS_MAX)};
    bool const configured = strstr(text, "cuda_graph_config'") != NULL;
    oos_logged list;
    if (!r.printed || !r.words) return false;
    add(&r, oos_engine_sglang.words->name);
    add(&r, "serve");
    add(&r, ""); /* the model, when it is found */
    for (oos_logged_open(text, &list); oos_logged_next(&list);) {
        const oos_flag_record *record = field_of(&r, list.key);
        if (record) take(&r, &list, record, configured);
    }
    if (!list.whole || !r.model || !*r.model || r.failed) return false;
    r.words[2] = r.model;
    *ret_command = (oos_logged_command){r.words, r.count, release_of(&r)};
    return true;
}
