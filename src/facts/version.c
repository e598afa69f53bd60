/* Reading and printing engine versions. */
#include "facts/facts.h"
#include "base/ascii.h"

#include <string.h>

bool oos_version_parse(oos_view text, oos_version *ret_version)
{
    size_t at = 0;
    uint64_t parts[3] = {0, 0, 0};
    int count = 0;
    if (at < text.len && (text.ptr[at] == 'v' || text.ptr[at] == 'V')) at++;
    while (count < 3) {
        if (at >= text.len || !oos_is_digit(text.ptr[at])) break;
        uint64_t number = 0;
        while (at < text.len && oos_is_digit(text.ptr[at])) {
            number = number * 10 + (uint64_t)(text.ptr[at++] - '0');
            if (number > 0xffff) return false;
        }
        parts[count++] = number;
        if (at >= text.len || text.ptr[at] != '.') break;
        at++;
    }
    if (count < 2) return false;
    oos_version version = OOS_VERSION(parts[0], parts[1], parts[2]);
    oos_view const rest = oos_view_slice(text, at, text.len);
    if (oos_view_starts(rest, "dev") && version > 0) version--;
    *ret_version = version;
    return true;
}

static char *number_print(char *at, unsigned number)
{
    char digits[10];
    size_t count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count) *at++ = digits[--count];
    return at;
}

oos_version oos_version_scan(oos_scan *scan)
{
    oos_version version = 0;
    return oos_version_parse(oos_scan_string_or_none(scan), &version) ? version : 0;
}

void oos_version_print(oos_version version, char *ret_text, size_t capacity)
{
    bool const dev = (version & 0xffff) == 0xffff || (version >> 16 & 0xffff) == 0xffff;
    if (dev) version++;
    char text[32], *at = text; /* by hand: every plan prints one */
    at = number_print(at, (unsigned)(version >> 32));
    *at++ = '.';
    at = number_print(at, (unsigned)(version >> 16 & 0xffff));
    *at++ = '.';
    at = number_print(at, (unsigned)(version & 0xffff));
    if (dev) memcpy(at, ".dev", 4), at += 4;
    size_t const len = (size_t)(at - text), room = capacity ? capacity - 1 : 0;
    memcpy(ret_text, text, len < room ? len : room);
    if (capacity) ret_text[len < room ? len : room] = '\0';
}
