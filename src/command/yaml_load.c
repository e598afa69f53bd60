/* Bounds and errors of every YAML file we read. */
#include "command/command.h"

enum { BRACKETS_DEPTH_MAX = 64, ANCHORS_MAX = 1000 };

bool oos_yaml_is_linear(oos_view text, size_t most_values)
{
    yaml_parser_t parser;
    unsigned depth = 0, anchors = 0;
    size_t values = 0;
    bool within = true, ended = false;
    if (!yaml_parser_initialize(&parser)) return false;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    while (within && !ended) {
        yaml_token_t token;
        if (!yaml_parser_scan(&parser, &token)) break; /* broken: the reader says why */
        if (token.type == YAML_FLOW_SEQUENCE_START_TOKEN || token.type == YAML_FLOW_MAPPING_START_TOKEN)
            depth++;
        if (token.type == YAML_FLOW_SEQUENCE_END_TOKEN || token.type == YAML_FLOW_MAPPING_END_TOKEN)
            depth -= depth > 0;
        anchors += token.type == YAML_ANCHOR_TOKEN || token.type == YAML_ALIAS_TOKEN;
        values += token.type == YAML_SCALAR_TOKEN || token.type == YAML_BLOCK_ENTRY_TOKEN;
        ended = token.type == YAML_STREAM_END_TOKEN || token.type == YAML_NO_TOKEN;
        yaml_token_delete(&token);
        within = depth <= BRACKETS_DEPTH_MAX && anchors <= ANCHORS_MAX && values <= most_values;
    }
    yaml_parser_delete(&parser);
    return within;
}

bool oos_yaml_is_bounded(oos_view bytes, size_t most_bytes, size_t most_brackets)
{
    size_t brackets = 0;
    if (bytes.len > most_bytes) return false;
    for (size_t i = 0; i < bytes.len; i++) brackets += bytes.ptr[i] == '[' || bytes.ptr[i] == '{';
    return brackets <= most_brackets;
}

oomsight_status oos_yaml_load(oos_view bytes, size_t most_bytes, size_t most_brackets, const char *kind,
                              yaml_document_t *ret_document, oomsight_error *reterr)
{
    yaml_parser_t parser;
    if (!oos_yaml_is_bounded(bytes, most_bytes, most_brackets) || !oos_yaml_is_linear(bytes, most_bytes))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "more than %zu bytes or %zu brackets is no %s file",
                        most_bytes, most_brackets, kind);
    if (!yaml_parser_initialize(&parser)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for YAML");
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes.ptr, bytes.len);
    oomsight_status status = OOMSIGHT_OK;
    if (!yaml_parser_load(&parser, ret_document)) {
        status = oos_fail(reterr, parser.error == YAML_MEMORY_ERROR ? OOMSIGHT_NOMEM : OOMSIGHT_MALFORMED,
                          "not YAML: %s", parser.problem ? parser.problem : "unreadable");
        if (reterr) reterr->line = (uint32_t)parser.problem_mark.line + 1;
    }
    yaml_parser_delete(&parser);
    return status;
}
