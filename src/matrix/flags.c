/* The flags of a matrix file: sets of words, or an axis per flag; and the exclusions, which name entries of the axes. */
#include "base/secret.h"
#include "base/shown.h"
#include "base/text.h"
#include "matrix/matrix.h"
#include "match/match.h"

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One word as a shell reads it: quotes and backslashes, no variables. False: a quote is open. */
static bool word_take(const char **at, oos_text *out)
{
    char quote = 0;
    const char *p = *at;
    for (; *p && (quote || !blank(*p)); p++) {
        if (quote && *p == quote)
            quote = 0;
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == '\\' && quote != '\'' && p[1] && (!quote || p[1] == '"' || p[1] == '\\'))
            oos_text_add(out, (oos_view){++p, 1});
        else
            oos_text_add(out, (oos_view){p, 1});
    }
    *at = p;
    return !quote;
}

static oomsight_status split_text(oos_matrix_reader *in, const yaml_node_t *node, const char *text,
                                  oos_matrix_words *ret_words)
{
    const char *words[OOS_MATRIX_WORDS / 2];
    size_t count = 0;
    while (*text) {
        while (blank(*text)) text++;
        if (!*text) break;
        oos_text word = {0};
        bool const closed = word_take(&text, &word);
        const char *copy =
            word.failed ? NULL : oos_arena_copy(in->arena, (oos_view){word.ptr ? word.ptr : "", word.len});
        oos_text_free(&word);
        if (!closed) return oos_matrix_wrong(in, node, "a quote is not closed");
        if (!copy) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
        if (count == sizeof words / sizeof *words) return oos_matrix_wrong(in, node, "too many words");
        words[count++] = copy;
    }
    const char **list = OOS_NEW_ARRAY(in->arena, const char *, count);
    if (!list) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    if (count) memcpy(list, words, count * sizeof *words);
    *ret_words = (oos_matrix_words){list, count};
    return OOMSIGHT_OK;
}

oomsight_status oos_matrix_split(oos_matrix_reader *in, const yaml_node_t *node, oos_matrix_words *ret_words)
{
    *ret_words = (oos_matrix_words){0};
    if (!node) return OOMSIGHT_OK;
    if (node->type != YAML_SEQUENCE_NODE) { /* text */
        const char *text = NULL;
        OOS_TRY(oos_matrix_text(in, node, "flags", &text));
        return split_text(in, node, text, ret_words);
    }
    size_t const count = oos_matrix_item_count(node);
    if (count > OOS_MATRIX_WORDS / 2) return oos_matrix_wrong(in, node, "too many words");
    OOS_TRY(oos_matrix_room(in, node, count));
    const char **list = OOS_NEW_ARRAY(in->arena, const char *, count);
    if (!list) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < count; i++)
        OOS_TRY(oos_matrix_text(in, oos_matrix_item(in, node, i), "a word", &list[i]));
    *ret_words = (oos_matrix_words){list, count};
    return OOMSIGHT_OK;
}

static oomsight_status shown_keep(oos_matrix_reader *in, oos_matrix_choice *choice)
{
    size_t const count = choice->words.count;
    const char *const *hidden = oos_secret_hidden_words(in->arena, choice->words.list, count);
    const char **list = OOS_NEW_ARRAY(in->arena, const char *, count + 1);
    bool ok = hidden && list;
    for (size_t i = 0; ok && i < count; i++) ok = (list[i] = oos_shown(in->arena, hidden[i])) != NULL;
    choice->shown = list;
    return ok ? OOMSIGHT_OK : oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
}

static oomsight_status joined(oos_matrix_reader *in, const char *const *words, size_t count,
                              const char **ret_text)
{
    oos_text text = {0};
    for (size_t i = 0; i < count; i++) {
        if (i) oos_text_put(&text, " ");
        oos_text_put(&text, words[i]);
    }
    if (!count) oos_text_put(&text, "-");
    *ret_text = text.failed ? NULL : oos_arena_copy(in->arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return *ret_text ? OOMSIGHT_OK : oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
}

static oomsight_status set_read(oos_matrix_reader *in, const yaml_node_t *node, oos_matrix_choice *choice)
{
    const char *name = NULL;
    const yaml_node_t *words = node;
    if (node->type == YAML_MAPPING_NODE) {
        const yaml_node_t *given = oos_matrix_get(in, node, "name");
        words = oos_matrix_get(in, node, "flags");
        size_t const keys = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
        if (keys != (size_t)(given != NULL) + (size_t)(words != NULL))
            return oos_matrix_wrong(in, node, "a set of flags has 'name' and 'flags'");
        if (given) OOS_TRY(oos_matrix_text(in, given, "a name", &name));
    }
    OOS_TRY(oos_matrix_split(in, words, &choice->words));
    OOS_TRY(shown_keep(in, choice));
    const char *given_name = name;
    if (!name) OOS_TRY(joined(in, choice->words.list, choice->words.count, &name));
    OOS_TRY(oos_matrix_label_id(in, &in->sets, name, &choice->id));
    if (given_name)
        choice->label = oos_shown(in->arena, given_name);
    else
        OOS_TRY(joined(in, choice->shown, choice->words.count, &choice->label));
    oos_matrix_label *mine = NULL;
    HASH_FIND_STR(in->sets, name, mine);
    if (!choice->label || !mine) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    mine->text = choice->label;
    return OOMSIGHT_OK;
}

static bool is_word(const yaml_node_t *node, const char *const *list)
{
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
    for (; *list; list++)
        if (strcmp((const char *)node->data.scalar.value, *list) == 0) return true;
    return false;
}

/* true: the flag alone; false and nothing: not given; anything else: the flag and its value. */
static oomsight_status value_read(oos_matrix_reader *in, const char *flag, const yaml_node_t *node,
                                  oos_matrix_choice *choice)
{
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", "~", "null", "", NULL};
    OOS_TRY(oos_matrix_text(in, node, "a value of a flag (JSON in quotes)", &choice->label));
    size_t const count = is_word(node, no) ? 0 : is_word(node, yes) ? 1 : 2;
    const char **list = OOS_NEW_ARRAY(in->arena, const char *, 2);
    if (!list) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    list[0] = flag;
    list[1] = choice->label;
    choice->words = (oos_matrix_words){list, count};
    return shown_keep(in, choice);
}

static oomsight_status axis_read(oos_matrix_reader *in, const char *flag, const yaml_node_t *node,
                                 oos_matrix_axis *axis)
{
    size_t const count = oos_matrix_item_count(node);
    if (count == 0) return oos_matrix_wrong(in, node, "an axis without a value");
    OOS_TRY(oos_matrix_room(in, node, count));
    oos_matrix_choice *choices = OOS_NEW_ARRAY(in->arena, oos_matrix_choice, count);
    if (!choices) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item = oos_matrix_item(in, node, i);
        if (!item) return oos_matrix_wrong(in, node, "a list with nothing in it");
        OOS_TRY(flag ? value_read(in, flag, item, &choices[i]) : set_read(in, item, &choices[i]));
    }
    *axis = (oos_matrix_axis){.flag = flag, .choices = choices, .count = count};
    return OOMSIGHT_OK;
}

static bool is_set(const oos_matrix_reader *in, const yaml_node_t *node)
{
    return node->type != YAML_MAPPING_NODE || oos_matrix_get(in, node, "flags") != NULL;
}

oomsight_status oos_matrix_read_flags(oos_matrix_reader *in, const yaml_node_t *node, oos_matrix_block *block)
{
    oos_matrix_axis *axes = OOS_NEW_ARRAY(in->arena, oos_matrix_axis, OOS_MATRIX_AXES);
    if (!axes) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    block->axes = axes;
    block->flag_count = 1;
    block->axis_count = 1;
    if (!node) { /* one set without a word */
        oos_matrix_choice *none = OOS_NEW(in->arena, oos_matrix_choice);
        if (!none) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
        none->label = "-";
        axes[0] = (oos_matrix_axis){.choices = none, .count = 1};
        return oos_matrix_label_id(in, &in->sets, none->label, &none->id);
    }
    if (is_set(in, node)) {
        OOS_TRY(axis_read(in, NULL, node, &axes[0]));
        block->flag_count = axes[0].count;
        return OOMSIGHT_OK;
    }
    size_t const count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    if (count == 0 || count > OOS_MATRIX_AXES)
        return oos_matrix_wrong(in, node, "between 1 and %d flags make a product", OOS_MATRIX_AXES);
    block->axis_count = count;
    for (size_t i = 0; i < count; i++) {
        const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
        const yaml_node_t *value = yaml_document_get_node(in->document, pair->value);
        const char *key = NULL;
        OOS_TRY(oos_matrix_text(in, yaml_document_get_node(in->document, pair->key), "a flag", &key));
        const char *flag = *key == '-' ? key : oos_arena_format(in->arena, "--%s", key);
        if (!flag) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
        if (!value) return oos_matrix_wrong(in, node, "a flag without a value");
        OOS_TRY(axis_read(in, flag, value, &axes[i]));
        if (__builtin_mul_overflow(block->flag_count, axes[i].count, &block->flag_count) ||
            block->flag_count > OOS_MATRIX_POINTS)
            return oos_matrix_wrong(in, node, "the product of these flags is too large");
    }
    return OOMSIGHT_OK;
}

/* ---- exclude ---------------------------------------------------------------------------------------------------- */

typedef const char *(*label_of)(const oos_matrix_block *block, size_t axis, size_t at);

static const char *model_label(const oos_matrix_block *block, size_t axis, size_t at)
{
    (void)axis;
    return block->models[at].label;
}
static const char *gpu_label(const oos_matrix_block *block, size_t axis, size_t at)
{
    (void)axis;
    return block->gpus[at].label;
}
static const char *version_label(const oos_matrix_block *block, size_t axis, size_t at)
{
    (void)axis;
    return block->versions[at].text;
}
static const char *choice_label(const oos_matrix_block *block, size_t axis, size_t at)
{
    return block->axes[axis].choices[at].label;
}

/* Which of `count` labels one of the patterns names. */
static oomsight_status marks_read(oos_matrix_reader *in, const yaml_node_t *node,
                                  const oos_matrix_block *block, label_of label, size_t axis, size_t count,
                                  const bool **ret_marks)
{
    bool *marks = OOS_NEW_ARRAY(in->arena, bool, count);
    if (!marks) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    size_t const patterns = oos_matrix_item_count(node);
    OOS_TRY(oos_matrix_room(in, node, patterns * (1 + count / 64)));
    for (size_t p = 0; p < patterns; p++) {
        const char *pattern = NULL;
        OOS_TRY(oos_matrix_text(in, oos_matrix_item(in, node, p), "a pattern", &pattern));
        for (size_t i = 0; i < count; i++) marks[i] |= oos_glob_matches(pattern, label(block, axis, i));
    }
    *ret_marks = marks;
    return OOMSIGHT_OK;
}

static oomsight_status exclude_key(oos_matrix_reader *in, const yaml_node_t *key, const yaml_node_t *value,
                                   const oos_matrix_block *block, oos_matrix_exclude *exclude)
{
    const char *name = NULL;
    OOS_TRY(oos_matrix_text(in, key, "a key", &name));
    if (!value) return oos_matrix_wrong(in, key, "a key without a value");
    if (strcmp(name, "model") == 0)
        return marks_read(in, value, block, model_label, 0, block->model_count, &exclude->models);
    if (strcmp(name, "gpu") == 0)
        return marks_read(in, value, block, gpu_label, 0, block->gpu_count, &exclude->gpus);
    if (strcmp(name, "version") == 0)
        return marks_read(in, value, block, version_label, 0, block->version_count, &exclude->versions);
    for (size_t a = 0; a < block->axis_count; a++) {
        const char *flag = block->axes[a].flag;
        const char *bare = flag && *name != '-' ? flag + strspn(flag, "-") : flag;
        if (bare ? strcmp(bare, name) == 0 : strcmp(name, "flags") == 0)
            return marks_read(in, value, block, choice_label, a, block->axes[a].count, &exclude->axes[a]);
    }
    return oos_matrix_wrong(in, key, "'%s' is no axis: model, gpu, version, flags, or a flag of the product",
                            name);
}

oomsight_status oos_matrix_read_excludes(oos_matrix_reader *in, const yaml_node_t *node,
                                         oos_matrix_block *block)
{
    size_t const count = node ? oos_matrix_item_count(node) : 0;
    if (count == 0) return OOMSIGHT_OK;
    OOS_TRY(oos_matrix_room(in, node, count));
    oos_matrix_exclude *list = OOS_NEW_ARRAY(in->arena, oos_matrix_exclude, count);
    if (!list) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *map = oos_matrix_item(in, node, i);
        if (!map || map->type != YAML_MAPPING_NODE ||
            map->data.mapping.pairs.start == map->data.mapping.pairs.top)
            return oos_matrix_wrong(in, node, "an exclusion is a mapping of axes to patterns");
        for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
             pair++)
            OOS_TRY(exclude_key(in, yaml_document_get_node(in->document, pair->key),
                                yaml_document_get_node(in->document, pair->value), block, &list[i]));
    }
    block->excludes = list;
    block->exclude_count = count;
    return OOMSIGHT_OK;
}
