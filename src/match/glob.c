/* Shell globs over whole names. */
#include "match/match.h"

static const char *glob_class(const char *glob, char c, bool *ret_in)
{
    bool const negate = *glob == '!';
    if (negate) glob++;
    bool in = false;
    for (bool first = true; *glob && (first || *glob != ']'); first = false) {
        char const from = *glob++;
        char to = from;
        if (glob[0] == '-' && glob[1] && glob[1] != ']') {
            to = glob[1];
            glob += 2;
        }
        in |= c >= from && c <= to;
    }
    *ret_in = in != negate;
    return *glob == ']' ? glob + 1 : NULL;
}

bool oos_glob_matches(const char *glob, const char *text)
{
    const char *star = NULL, *resume = NULL;
    for (;;) {
        if (*glob == '*') {
            star = ++glob;
            resume = text;
            continue;
        }
        if (*text == '\0' && *glob == '\0') return true;
        bool in = false;
        const char *after = NULL;
        if (*glob == '[' && *text) after = glob_class(glob + 1, *text, &in);
        if (after && in) {
            glob = after;
            text++;
        } else if (!after && *text && *glob && (*glob == '?' || *glob == *text)) {
            glob++;
            text++;
        } else {
            if (!star || *resume == '\0') return false;
            text = ++resume;
            glob = star;
        }
    }
}
