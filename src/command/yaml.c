/* YAML by libyaml's document reader, which is a table of nodes: an alias is one more edge to a node, so what a file
 * full of aliases would unfold to is limited here, by bytes and by depth. */
#include "command/command.h"
#include "base/text.h"

enum {
    UNFOLDED_MAX = 1 << 20,
    DEPTH_MAX = 64,
    /* libyaml's time grows with the square of both: 64 KiB of open brackets take it 13 s */
    FILE_MAX = 128 << 10,
    BRACKETS_MAX = 1000
};

typedef enum scalar_kind { SCALAR_TEXT, SCALAR_TRUE, SCALAR_FALSE, SCALAR_NULL, SCALAR_NUMBER } scalar_kind;

static bool decimal(const char *text) /* a JSON number */
{
    size_t len = 0;
    if (*text == '-') text++;
    while (text[len] >= '0' && text[len] <= '9') len++;
    if (len == 0 || (len > 1 && *text == '0')) return false;
    text += len;
    if (*text == '.') {
        for (len = 1; text[len] >= '0' && text[len] <= '9'; len++) {
        }
        if (len == 1) return false;
        text += len;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        if (*text == '-' || *text == '+') text++;
        for (len = 0; text[len] >= '0' && text[len] <= '9'; len++) {
        }
        if (len == 0) return false;
        text += len;
    }
    return *text == '\0';
}

/* The implicit types of YAML 1.1 that a config file can need. Numbers in other bases and dates stay text. */
static scalar_kind scalar_type(const yaml_node_t *node)
{
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", NULL};
    static const char *const null[] = {"", "~", "null", "Null", "NULL", NULL};
    const char *text = (const char *)node->data.scalar.value;
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return SCALAR_TEXT;
    if (strlen(text) != node->data.scalar.length) return SCALAR_TEXT;
    if (oos_is_among(text, yes)) return SCALAR_TRUE;
    if (oos_is_among(text, no)) return SCALAR_FALSE;
    if (oos_is_among(text, null)) return SCALAR_NULL;
    return decimal(text) ? SCALAR_NUMBER : SCALAR_TEXT;
}

static void scalar_json(const yaml_node_t *node, oos_text *out)
{
    const unsigned char *text = node->data.scalar.value;
    oos_text_put(out, "\"");
    for (size_t i = 0; i < node->data.scalar.length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            oos_text_printf(out, "\\%c", text[i]);
        else if (text[i] < 0x20)
            oos_text_printf(out, "\\u%04x", text[i]);
        else
            oos_text_add(out, (oos_view){(const char *)&text[i], 1});
    }
    oos_text_put(out, "\"");
}

static void json_scalar(const yaml_node_t *node, oos_text *out)
{
    switch (scalar_type(node)) {
    case SCALAR_TRUE: oos_text_put(out, "true"); break;
    case SCALAR_FALSE: oos_text_put(out, "false"); break;
    case SCALAR_NULL: oos_text_put(out, "null"); break;
    case SCALAR_NUMBER: oos_text_put(out, (const char *)node->data.scalar.value); break;
    case SCALAR_TEXT: scalar_json(node, out); break;
    }
}

/* False: too deep, too long, or a key that is no text. Recursion is bounded by DEPTH_MAX. */
static bool json_node(yaml_document_t *document, const yaml_node_t *node, unsigned depth,
                      oos_text *out) /* NOLINT */
{
    if (depth > DEPTH_MAX || out->len > UNFOLDED_MAX || !node) return false;
    switch (node->type) {
    case YAML_SCALAR_NODE: json_scalar(node, out); return true;
    case YAML_SEQUENCE_NODE:
        oos_text_put(out, "[");
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++) {
            if (item > node->data.sequence.items.start) oos_text_put(out, ",");
            if (!json_node(document, yaml_document_get_node(document, *item), depth + 1, out)) return false;
        }
        oos_text_put(out, "]");
        return true;
    case YAML_MAPPING_NODE:
        oos_text_put(out, "{");
        for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++) {
            const yaml_node_t *key = yaml_document_get_node(document, pair->key);
            if (!key || key->type != YAML_SCALAR_NODE) return false;
            if (pair > node->data.mapping.pairs.start) oos_text_put(out, ",");
            scalar_json(key, out);
            oos_text_put(out, ":");
            if (!json_node(document, yaml_document_get_node(document, pair->value), depth + 1, out))
                return false;
        }
        oos_text_put(out, "}");
        return true;
    case YAML_NO_NODE: break;
    }
    return false;
}

typedef struct reader {
    oos_arena *arena;
    yaml_document_t *document;
    size_t unfolded_bytes;
    oomsight_error *reterr;
} reader;

static oomsight_status wrong(reader *in, const yaml_node_t *node, const char *why)
{
    oomsight_status const status = oos_fail(in->reterr, OOMSIGHT_MALFORMED, "%s", why);
    if (in->reterr && node) in->reterr->line = (uint32_t)node->start_mark.line + 1;
    return status;
}

/* A value as one word: a scalar's text, anything deeper as JSON. */
static oomsight_status word_read(reader *in, const yaml_node_t *node, const char **ret_word)
{
    if (node->type == YAML_SCALAR_NODE) {
        const char *text = (const char *)node->data.scalar.value;
        *ret_word = oos_arena_copy(in->arena, (oos_view){text, node->data.scalar.length});
        in->unfolded_bytes += node->data.scalar.length;
    } else {
        oos_text json = {0};
        if (!json_node(in->document, node, 0, &json)) {
            oos_text_free(&json);
            return wrong(in, node, "too deep, too long, or with a key that is not text");
        }
        *ret_word = json.failed ? NULL : oos_arena_copy(in->arena, (oos_view){json.ptr, json.len});
        in->unfolded_bytes += json.len;
        oos_text_free(&json);
    }
    if (in->unfolded_bytes > UNFOLDED_MAX)
        return wrong(in, node, "the aliases of this file unfold to too much");
    return *ret_word ? OOMSIGHT_OK : oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for YAML");
}

static oomsight_status option_read(reader *in, const yaml_node_t *key, const yaml_node_t *value,
                                   oos_yaml_option *option)
{
    if (!key || key->type != YAML_SCALAR_NODE || key->data.scalar.length == 0)
        return wrong(in, key, "a key that is not text");
    option->line = (uint32_t)key->start_mark.line + 1;
    OOS_TRY(word_read(in, key, &option->key));
    if (!value) return wrong(in, key, "a key without a value");

    size_t count = 1;
    option->kind = OOS_YAML_MAP;
    if (value->type == YAML_SCALAR_NODE) {
        scalar_kind const type = scalar_type(value);
        option->kind = type == SCALAR_TRUE    ? OOS_YAML_TRUE
                       : type == SCALAR_FALSE ? OOS_YAML_FALSE
                       : type == SCALAR_NULL  ? OOS_YAML_NULL
                                              : OOS_YAML_SCALAR;
    } else if (value->type == YAML_SEQUENCE_NODE) {
        option->kind = OOS_YAML_LIST;
        count = (size_t)(value->data.sequence.items.top - value->data.sequence.items.start);
    }
    const char **values = OOS_NEW_ARRAY(in->arena, const char *, count);
    if (!values) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for YAML");
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item = value;
        if (option->kind == OOS_YAML_LIST)
            item = yaml_document_get_node(in->document, value->data.sequence.items.start[i]);
        if (!item) return wrong(in, value, "a list with nothing in it");
        OOS_TRY(word_read(in, item, &values[i]));
    }
    option->values = values;
    option->value_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status options_read(reader *in, const oos_yaml_option **ret_options, size_t *ret_count)
{
    const yaml_node_t *root = yaml_document_get_root_node(in->document);
    *ret_options = NULL;
    *ret_count = 0;
    if (!root || (root->type == YAML_SCALAR_NODE && scalar_type(root) == SCALAR_NULL)) return OOMSIGHT_OK;
    if (root->type != YAML_MAPPING_NODE) return wrong(in, root, "not a mapping of options to values");
    size_t const count = (size_t)(root->data.mapping.pairs.top - root->data.mapping.pairs.start);
    oos_yaml_option *options = OOS_NEW_ARRAY(in->arena, oos_yaml_option, count);
    if (!options) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for YAML");
    for (size_t i = 0; i < count; i++) {
        const yaml_node_pair_t *pair = &root->data.mapping.pairs.start[i];
        OOS_TRY(option_read(in, yaml_document_get_node(in->document, pair->key),
                            yaml_document_get_node(in->document, pair->value), &options[i]));
    }
    *ret_options = options;
    *ret_count = count;
    return OOMSIGHT_OK;
}

oomsight_status oos_yaml_read(oos_arena *arena, oos_view bytes, const oos_yaml_option **ret_options,
                              size_t *ret_count, oomsight_error *reterr)
{
    yaml_document_t document;
    OOS_TRY(oos_yaml_load(bytes, FILE_MAX, BRACKETS_MAX, "config", &document, reterr));
    reader in = {.arena = arena, .document = &document, .reterr = reterr};
    oomsight_status const status = options_read(&in, ret_options, ret_count);
    yaml_document_delete(&document);
    return status;
}
