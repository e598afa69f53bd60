/* Python's spelling of a dict or of a dataclass, read as far as a command line needs it. */
#include "command/command.h"
#include "base/ascii.h"
#include "base/view.h"

static void skip(oos_logged *l)
{
    while (*l->at == ' ' || *l->at == ',' || *l->at == ':' || *l->at == '=') l->at++;
}

void oos_logged_open(const char *text, oos_logged *ret_list)
{
    oos_logged list = {.at = text};
    while (oos_is_alnum(*list.at) || *list.at == '_') list.at++;
    list.broken = *list.at != (list.at == text ? '{' : '(');
    if (!list.broken) list.at++;
    *ret_list = list;
}

static bool quoted_read(oos_logged *l, char *out, size_t capacity)
{
    size_t len = 0;
    char const quote = *l->at++;
    for (; *l->at && *l->at != quote; l->at++) {
        if (*l->at == '\\' && l->at[1]) l->at++;
        if (len + 1 < capacity) out[len++] = *l->at;
    }
    out[len] = '\0';
    if (!*l->at) return false;
    l->at++;
    return true;
}

/* Python's spelling of JSON: single quotes, True, False, None. */
static size_t respelt(const char *at, oos_view *ret_piece)
{
    static const char *const words[][2] = {
        {"True", "true"}, {"False", "false"}, {"None", "null"}, {"'", "\""}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(at, words[i][0], strlen(words[i][0])) == 0) {
            *ret_piece = oos_view_of(words[i][1]);
            return strlen(words[i][0]);
        }
    *ret_piece = (oos_view){at, 1};
    return 1;
}

static void plain_read(oos_logged *l, char *out, size_t capacity)
{
    size_t len = 0;
    int depth = 0;
    for (; *l->at && (depth || !strchr(",}])", *l->at));) {
        oos_view piece = {l->at, 1};
        depth += (strchr("{[(", *l->at) != NULL) - (strchr("}])", *l->at) != NULL);
        size_t const eaten = l->nested ? respelt(l->at, &piece) : 1;
        for (size_t i = 0; i < piece.len && len + 1 < capacity; i++) out[len++] = piece.ptr[i];
        l->at += eaten;
    }
    out[len] = '\0';
}

static bool value_read(oos_logged *l, char *out, size_t capacity)
{
    skip(l);
    l->nested = *l->at == '{' || *l->at == '[';
    if (*l->at == '\'' || *l->at == '"') return quoted_read(l, out, capacity);
    plain_read(l, out, capacity);
    return true;
}

static bool key_read(oos_logged *l)
{
    size_t len = 0;
    if (*l->at == '\'' || *l->at == '"') return quoted_read(l, l->key, sizeof l->key);
    for (; oos_is_alnum(*l->at) || *l->at == '_'; l->at++)
        if (len + 1 < sizeof l->key) l->key[len++] = *l->at;
    l->key[len] = '\0';
    return len > 0;
}

bool oos_logged_next(oos_logged *l)
{
    if (l->broken || l->whole) return false;
    skip(l);
    l->whole = *l->at == '}' || *l->at == ')';
    if (l->whole || !*l->at) return false;
    l->broken = !key_read(l) || !value_read(l, l->value, sizeof l->value);
    return !l->broken;
}
