/* Which engine class is described by which record, and what a record may name of what is written in C. */
#include "model/arch/arch.h"

#include "facts/facts.h"

#define WRAPPED "language_model.model."

static const struct {
    const char *name;
    void (*build)(oos_arch *a);
} ropes[] = {
    {"usual", oos_rope_usual},     {"none", oos_rope_none},       {"inside", oos_rope_inside},
    {"fp32", oos_rope_fp32},       {"gemma3", oos_rope_gemma3},   {"gemma4", oos_rope_gemma4},
    {"indexer", oos_rope_indexer}, {"mimo_v2", oos_rope_mimo_v2}, {"mrope4", oos_rope_mrope4},
};

/* ---- names that composite checkpoints and the engine's wrappers spell differently ---- */

static const oos_rename *read_names(const oos_scope *s)
{
    const json_t *list = json_object_get(s->record->body, "names");
    size_t const count = json_array_size(list);
    if (!list) return NULL;
    if (!json_is_array(list) || count > OOS_MATRICES_MAX) {
        oos_record_fail(s, "names", "is not a list");
        return NULL;
    }
    oos_rename *names = OOS_NEW_ARRAY(s->arch->arena, oos_rename, count + 1);
    if (!names) {
        oos_arch_fail(s->arch, OOMSIGHT_NOMEM, "no memory for the model");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(list, i), *to = json_object_get(name, "to");
        bool const inside = json_object_get(name, "inside") != NULL;
        names[i].where = inside ? OOS_RENAME_INSIDE : OOS_RENAME_PREFIX;
        names[i].from = oos_record_word(s, name, inside ? "inside" : "prefix", NULL);
        names[i].to = json_is_string(to) ? json_string_value(to) : NULL; /* nothing: it is dropped */
        if (!names[i].from || (!json_is_string(to) && !json_is_null(to)))
            oos_record_fail(s, "names",
                            "an entry is not {\"prefix\" or \"inside\": word, \"to\": word or null}");
    }
    return names;
}

/* ---- from a class to its family ---- */

static void read_family(const oos_scope *s, oos_family *f)
{
    const json_t *body = s->record->body;
    const char *build = oos_record_word(s, body, "build", NULL),
               *rope = oos_record_word(s, body, "rope", "usual");
    f->prefix = oos_record_word(s, body, "prefix", NULL);
    f->lora_embeddings = oos_record_yes(s, body, "lora_embeddings", false);
    f->renames = read_names(s);
    f->build = build ? oos_build_inside : oos_build_record;
    for (size_t i = 0; i < sizeof ropes / sizeof *ropes; i++)
        if (strcmp(ropes[i].name, rope) == 0) f->rope = ropes[i].build;
    if (build && strcmp(build, "inside") != 0)
        oos_record_fail(s, "build", "'%.40s' is not a word of the vocabulary", build);
    if (!f->rope) oos_record_fail(s, "rope", "'%.40s' is not a word of the vocabulary", rope);
}

/* A tower says how its wrapper calls the decoder. */
static void read_tower(oos_arch *a, const char *name, oos_family *f)
{
    oos_record *tower = OOS_NEW(a->arena, oos_record);
    const char *file = oos_arena_format(a->arena, "towers/%s", name);
    if (!tower || !file) {
        oos_arch_fail(a, OOMSIGHT_NOMEM, "no memory for the model");
        return;
    }
    a->status = oos_record_open(a->arena, a->data_dir, file, tower, a->reterr);
    if (a->status != OOMSIGHT_OK) return;
    oos_scope const s = {.arch = a, .record = tower};
    f->tower = tower;
    if (!f->prefix) f->prefix = oos_record_word(&s, tower->body, "decoder", WRAPPED);
    if (!f->renames) f->renames = read_names(&s);
    oos_record_code(&s, &f->code);
}

static const oos_family *make(oos_arch *a, const char *file, json_t *body, const char *class)
{
    oos_family *f = OOS_NEW(a->arena, oos_family);
    oos_record *record = OOS_NEW(a->arena, oos_record);
    const char *name = oos_arena_copy(a->arena, oos_view_of(class));
    if (!f || !record || !name) {
        oos_arch_fail(a, OOMSIGHT_NOMEM, "no memory for the model");
        return NULL;
    }
    json_t *over = json_object_get(json_object_get(body, "classes"), class);
    *f = (oos_family){.architecture = name, .record = record};
    a->status = oos_record_finish(a->arena, a->data_dir, file, body, over, record, a->reterr);
    if (a->status != OOMSIGHT_OK) return NULL;
    oos_scope const s = {.arch = a, .record = record};
    read_family(&s, f);
    const char *tower = oos_record_word(&s, record->body, "tower", NULL);
    if (a->status == OOMSIGHT_OK && tower) read_tower(a, tower, f);
    if (a->status == OOMSIGHT_OK) oos_record_code(&s, &f->code);
    return a->status == OOMSIGHT_OK ? f : NULL;
}

/* The class of that name, or the one that says to be of that model_type. */
static const char *class_in(json_t *body, const char *word, bool by_type)
{
    const char *class, *type = NULL;
    json_t *over;
    json_object_foreach(json_object_get(body, "classes"), class, over)
    {
        if (!by_type && strcmp(class, word) == 0) return class;
        if (by_type && oos_json_str(over, "model_type", &type) && strcmp(type, word) == 0) return class;
    }
    return NULL;
}

const oos_family *oos_family_of(oos_arch *a, oos_view bytes, const char *file, const char *word, bool by_type)
{
    json_t *body = NULL;
    a->status = oos_record_parse(a->arena, bytes, file, &body, a->reterr);
    const char *class = a->status == OOMSIGHT_OK ? class_in(body, word, by_type) : NULL;
    return class ? make(a, file, body, class) : NULL;
}

/* Only files that hold the word in quotes are parsed. */
static const oos_family *search(oos_arch *a, const char *word, bool by_type)
{
    oos_data_file *files = NULL;
    size_t count = 0;
    const char *quoted = oos_arena_format(a->arena, "\"%s\"", word);
    if (!quoted) {
        oos_arch_fail(a, OOMSIGHT_NOMEM, "no memory for the model");
        return NULL;
    }
    if (a->status == OOMSIGHT_OK)
        a->status = oos_data_list(a->arena, a->data_dir, "models", &files, &count, a->reterr);
    for (size_t i = 0; i < count && a->status == OOMSIGHT_OK; i++) {
        oos_view const bytes = {files[i].bytes, files[i].len};
        if (!memmem(bytes.ptr, bytes.len, quoted, strlen(quoted))) continue;
        const oos_family *family = oos_family_of(a, bytes, files[i].path, word, by_type);
        if (family) return family;
    }
    return NULL;
}

const oos_family *oos_family_find(oos_arch *a, const char *architecture)
{
    return search(a, architecture, false);
}

const oos_family *oos_family_inside(oos_arch *a)
{
    const json_t *class = json_array_get(json_object_get(a->text, "architectures"), 0);
    const oos_family *family = json_is_string(class) ? oos_family_find(a, json_string_value(class)) : NULL;
    const char *model_type = oos_arch_str(a, "model_type");
    return family || !model_type ? family : search(a, model_type, true);
}

/* The decoder's own record counts while it is built. */
static void by_decoder(oos_arch *a, const oos_family *decoder, void (*build)(oos_arch *a))
{
    const oos_family *wrapper = a->family;
    a->family = decoder;
    build(a);
    a->family = wrapper;
}

void oos_build_unknown(oos_arch *a)
{
    oos_family common = {.architecture = a->model->architecture};
    oos_record record = {0};
    const char *name = a->model->moe.experts > 0 ? "common_experts" : "common";
    a->model->common = true;
    a->status = oos_record_open(a->arena, a->data_dir, name, &record, a->reterr);
    common.record = &record;
    if (a->status == OOMSIGHT_OK) by_decoder(a, &common, oos_build_record);
}

const oos_record *oos_tower_common(oos_arch *a)
{
    oos_family common = {0};
    if (a->status == OOMSIGHT_OK) read_tower(a, "common", &common);
    return common.tower;
}

void oos_build_inside(oos_arch *a)
{
    const oos_family *family = a->text == a->root ? NULL : oos_family_inside(a);
    bool const known = family && family->build != oos_build_inside;
    a->model->known = family != NULL;
    a->inside = family;
    by_decoder(a, known ? family : NULL, known ? family->build : oos_build_unknown);
}

void oos_rope_inside(oos_arch *a)
{
    const oos_family *family = a->inside;
    (family && family->rope != oos_rope_inside ? family->rope : oos_rope_usual)(a);
}
