/* `LLM(model="x", tensor_parallel_size=4)`: Python keywords as flags. Only literals are understood: text, numbers,
 * True, False, None, lists, tuples and dictionaries of them. */
#include "command/command.h"
#include "base/ascii.h"
#include "base/text.h"

#include <stdlib.h>

static bool name_char(char c)
{
    return oos_is_alnum(c) || c == '_';
}

/* The end of a literal that begins at `at`: behind the closing quote or bracket, or at the next separator. */
static const char *literal_end(const char *at, bool spaces_end)
{
    unsigned depth = 0;
    for (; *at; at++) {
        if (*at == '"' || *at == '\'') {
            char const quote = *at++;
            while (*at && *at != quote) at += *at == '\\' && at[1] ? 2 : 1;
            if (!*at) return at;
            if (depth == 0) return at + 1;
        } else if (strchr("[{(", *at)) {
            depth++;
        } else if (strchr("]})", *at)) {
            if (depth == 0) return at;
            if (--depth == 0) return at + 1;
        } else if (depth == 0 && (*at == ',' || (spaces_end && *at == ' '))) {
            return at;
        }
    }
    return at;
}

/* A Python literal as JSON text: quotes, True, False, None, tuples, a comma before the closing bracket. */
static void json_from_python(oos_view python, oos_text *out)
{
    for (size_t i = 0; i < python.len;) {
        char const c = python.ptr[i];
        if (c == '"' || c == '\'') {
            oos_text_put(out, "\"");
            for (i++; i < python.len && python.ptr[i] != c; i++) {
                if (python.ptr[i] == '"') oos_text_put(out, "\\");
                if (python.ptr[i] == '\\' && i + 1 < python.len && python.ptr[i + 1] == '\'') continue;
                oos_text_add(out, (oos_view){&python.ptr[i], 1});
                if (python.ptr[i] == '\\' && i + 1 < python.len)
                    oos_text_add(out, (oos_view){&python.ptr[++i], 1});
            }
            oos_text_put(out, "\"");
            i += i < python.len;
        } else if (oos_is_alpha(c)) {
            size_t const start = i;
            while (i < python.len && name_char(python.ptr[i])) i++;
            oos_view const word = {python.ptr + start, i - start};
            if (oos_view_is(word, "True"))
                oos_text_put(out, "true");
            else if (oos_view_is(word, "False"))
                oos_text_put(out, "false");
            else if (oos_view_is(word, "None"))
                oos_text_put(out, "null");
            else
                oos_text_add(out, word);
        } else if (c == ',') {
            size_t k = ++i;
            while (k < python.len && oos_is_space(python.ptr[k])) k++;
            if (k < python.len && !strchr("]})", python.ptr[k])) oos_text_put(out, ",");
        } else {
            oos_text_add(out, c == '(' ? oos_view_of("[") : c == ')' ? oos_view_of("]") : (oos_view){&c, 1});
            i++;
        }
    }
}

/* The text of a literal as a flag's value would be written. NULL: out of memory. */
static const char *value_text(oos_serve_reader *in, oos_view literal)
{
    while (literal.len && oos_is_space(literal.ptr[literal.len - 1])) literal.len--;
    if (literal.len >= 2 && (*literal.ptr == '"' || *literal.ptr == '\''))
        return oos_arena_copy(in->arena, oos_view_slice(literal, 1, literal.len - 2));
    if (literal.len && strchr("[{(", *literal.ptr)) {
        oos_text text = {0};
        json_from_python(literal, &text);
        const char *copy = text.failed ? NULL : oos_arena_copy(in->arena, (oos_view){text.ptr, text.len});
        oos_text_free(&text);
        return copy;
    }
    if (oos_view_starts(literal, "torch."))
        literal = oos_view_slice(literal, 6, literal.len); /* dtype=torch.bfloat16 */
    return oos_arena_copy(in->arena, literal);
}

static oos_flag_hit find_keyword(oos_serve_reader *in, oos_view key)
{
    char flag[96] = "--";
    if (key.len + 3 > sizeof flag) return (oos_flag_hit){0};
    memcpy(flag + 2, key.ptr, key.len);
    oos_view const spelling = {flag, key.len + 2};
    oos_flag_hit hit = oos_flags_find(in->table, spelling, in->version);
    /* some flags say the opposite of the field they set, or are called otherwise */
    for (size_t i = 0; !hit.record && i < in->table->count; i++)
        if (oos_view_is(key, in->table->list[i].dest))
            hit = oos_flags_find(in->table, oos_view_of(in->table->list[i].name), in->version);
    return hit;
}

/* Nothing but text, numbers, True, False and None, and lists of them: else it is known only where the program runs. */
static bool is_literal(oos_view text)
{
    if (oos_view_starts(text, "torch.")) return true;
    for (size_t i = 0; i < text.len;) {
        char const c = text.ptr[i];
        size_t const from = i;
        if (c == '"' || c == '\'') {
            for (i++; i < text.len && text.ptr[i] != c; i++) i += text.ptr[i] == '\\';
            i++;
        } else if (name_char(c) || c == '.') {
            while (i < text.len && (name_char(text.ptr[i]) || text.ptr[i] == '.')) i++;
            oos_view const word = {text.ptr + from, i - from};
            static const char *const words[] = {"True", "False", "None", "true", "false", "null", NULL};
            bool known = (c >= '0' && c <= '9') || c == '.';
            for (size_t k = 0; words[k]; k++)
                known |= oos_view_is(word, words[k]); /* those of JSON as well */
            if (!known) return false;
        } else if (strchr("*/%|&<>", c)) {
            return false;
        } else {
            i++;
        }
    }
    return true;
}

static oomsight_status not_known(oos_serve_reader *in, const char *key, oos_view text)
{
    while (text.len && oos_is_space(text.ptr[text.len - 1])) text.len--;
    return oos_fail(in->reterr, OOMSIGHT_MALFORMED,
                    "cannot be planned: %s is %.*s, whose value is not known here", key,
                    (int)(text.len < 60 ? text.len : 60), text.ptr);
}

static oomsight_status keyword_take(oos_serve_reader *in, oos_view key, oos_view literal, bool call)
{
    const char *value = value_text(in, literal);
    const char *name = oos_arena_copy(in->arena, key);
    if (!value || !name) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a keyword");
    oos_flag_hit hit = find_keyword(in, key);
    if (call && !is_literal(literal)) {
        const oos_flag_field *f =
            hit.record ? oos_serve_field(in->dialect, oos_view_of(hit.record->name)) : NULL;
        if (!hit.record || oos_serve_effect(in, hit, f, value) != OOS_FLAG_NO_MEMORY)
            return not_known(in, name, literal);
        oos_serve_note(in, (oos_given_flag){.name = name, .value = value, .effect = OOS_FLAG_NO_MEMORY});
        return OOMSIGHT_OK;
    }
    if (!hit.record) {
        char flag[96] = "--";
        const char *nearest = NULL;
        if (key.len + 3 <= sizeof flag) {
            memcpy(flag + 2, key.ptr, key.len);
            nearest = oos_flags_nearest(in->table, (oos_view){flag, key.len + 2}, in->version);
        }
        if (nearest) nearest = oos_arena_copy(in->arena, oos_view_of(nearest));
        oos_serve_note(in, (oos_given_flag){
                               .name = name, .value = value, .effect = OOS_FLAG_UNKNOWN, .nearest = nearest});
        return OOMSIGHT_OK;
    }
    if (strcmp(value, "None") == 0) {
        oos_serve_note(
            in, (oos_given_flag){
                    .name = name, .value = value, .effect = OOS_FLAG_NO_MEMORY, .note = "as by default"});
        return OOMSIGHT_OK;
    }
    return oos_serve_take(in, hit, value);
}

oomsight_status oos_serve_take_keywords(oos_serve_reader *in, const char *text)
{
    const char *call = strstr(text, "LLM("); /* else words of a shell, where nothing is quoted */
    bool const spaces_end = !call;
    bool first = true;
    if (call) text = call + 4;
    for (;;) {
        while (*text == ' ' || *text == ',' || *text == '\n' || *text == '\t') text++;
        if (!*text || *text == ')') return OOMSIGHT_OK;

        size_t len = 0;
        while (name_char(text[len])) len++;
        size_t behind = len;
        while (!spaces_end && text[behind] == ' ') behind++;
        if (len && text[behind] == '=' && text[behind + 1] != '=') {
            const char *value = text + behind + 1;
            while (!spaces_end && *value == ' ') value++;
            const char *end = literal_end(value, spaces_end);
            OOS_TRY(keyword_take(in, (oos_view){text, len}, (oos_view){value, (size_t)(end - value)}, call));
            text = end;
        } else {
            const char *end = literal_end(text, spaces_end);
            if (end == text)
                return oos_fail(in->reterr, OOMSIGHT_USAGE, "`%.60s` is not a keyword of LLM(...)", text);
            oos_view const word_view = {text, (size_t)(end - text)};
            if (call && !is_literal(word_view))
                return not_known(in, first && *text != '*' ? "model" : "a keyword", word_view);
            if (first) { /* LLM("model", ...) */
                in->positional = value_text(in, (oos_view){text, (size_t)(end - text)});
            } else {
                const char *word = oos_arena_copy(in->arena, (oos_view){text, (size_t)(end - text)});
                oos_serve_note(in, (oos_given_flag){.name = word ? word : "", .effect = OOS_FLAG_UNKNOWN});
            }
            text = end;
        }
        first = false;
    }
}
