/* Frames are told by their shape at either end of the line, names by their "::"; neither needs a list of symbols. */
#include "log/log.h"
#include "base/ascii.h"
#include "base/size.h"

enum { NAME_MAX_BYTES = 4 << 10 }; /* of what is looked at for a closing bracket */

static bool is_name(char c)
{
    return oos_is_alnum(c) || c == '_' || c == '~' || c == '$';
}

static char at(oos_view text, size_t index)
{
    return index < text.len ? text.ptr[index] : '\0';
}

static bool is_pair(oos_view text, size_t index)
{
    return at(text, index) == ':' && at(text, index + 1) == ':';
}

static bool holds(oos_view text, const char *word)
{
    return text.len && memmem(text.ptr, text.len, word, strlen(word));
}

/* Behind the bracket that closes the one at `index`; a line that was cut ends inside. */
static size_t behind_bracket(oos_view text, size_t index)
{
    size_t const most = oos_min(text.len, index + NAME_MAX_BYTES);
    size_t depth = 0;
    for (; index < most; index++) {
        char const c = text.ptr[index];
        if (c == '(' || c == '<' || c == '{') depth++;
        bool const arrow = c == '>' && index && text.ptr[index - 1] == '-';
        if ((c == ')' || (c == '>' && !arrow) || c == '}') && depth-- == 1) return index + 1;
    }
    return most;
}

/* Words that a name ends with which says itself what happened. */
static bool names_lack(oos_view name)
{
    return holds(name, "bad_alloc") || holds(name, "OutOfMemory") || holds(name, "out_of_memory") ||
           holds(name, "OutOfDeviceMemory");
}

static size_t mangled(oos_view text)
{
    if (!oos_view_starts(text, "_Z") || !(oos_is_digit(at(text, 2)) || strchr("NKLTS", at(text, 2))))
        return 0;
    size_t len = 2;
    while (len < text.len && (is_name(text.ptr[len]) || text.ptr[len] == '.')) len++;
    return len > 5 ? len : 0;
}

/* A part of a name: an identifier, or what stands in brackets for one. */
static size_t behind_part(oos_view text, size_t index)
{
    if (at(text, index) == '(' || at(text, index) == '{') return behind_bracket(text, index);
    while (index < text.len && is_name(text.ptr[index])) index++;
    return index;
}

/* Parameters hold types. Quoted words are a message in brackets, as Rust prints its errors. */
static size_t behind_parameters(oos_view text, size_t index)
{
    size_t const end = behind_bracket(text, index);
    return memchr(text.ptr + index, '"', end - index) ? index : end;
}

size_t oos_native_name(oos_view text)
{
    size_t len = 0, last = 0, parts = 0;
    if (!text.len || (!oos_is_alpha(text.ptr[0]) && text.ptr[0] != '_')) return 0;
    if ((len = mangled(text))) return len;
    for (;;) {
        last = len;
        len = behind_part(text, len);
        if (len == last) break;
        parts++;
        size_t const end = len;
        if (at(text, len) == '<' && parts > 1) len = behind_bracket(text, len);
        if (!is_pair(text, len)) {
            if (parts < 2) return 0;
            if (at(text, len) == '(') return behind_parameters(text, len);
            return names_lack(oos_view_slice(text, last, end - last)) ? 0 : len;
        }
        len += 2;
    }
    return parts >= 2 ? len : 0;
}

static oos_view trimmed(oos_view line)
{
    while (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t')) line = oos_view_slice(line, 1, SIZE_MAX);
    while (line.len && (line.ptr[line.len - 1] == ' ' || line.ptr[line.len - 1] == '\t')) line.len--;
    return line;
}

static size_t behind_digits(oos_view line, size_t index)
{
    while (oos_is_digit(at(line, index))) index++;
    return index;
}

static bool is_address(oos_view text)
{
    return oos_view_starts(text, "0x") && oos_is_alnum(at(text, 2));
}

/* "... [0x7f1c]" and "... (0x7f1c in /lib/libc10.so)": what glibc, MPI and PyTorch end a frame with. */
static bool ends_with_address(oos_view line)
{
    const char *open = line.len && line.ptr[line.len - 1] == ']' ? memrchr(line.ptr, '[', line.len) : NULL;
    if (open) return is_address(oos_view_slice(line, (size_t)(open - line.ptr) + 1, SIZE_MAX));
    open = line.len && line.ptr[line.len - 1] == ')' ? memrchr(line.ptr, '(', line.len) : NULL;
    return open && is_address(oos_view_slice(line, (size_t)(open - line.ptr) + 1, SIZE_MAX));
}

/* "name from ??:0", "name at ./csu/libc-start.c:360", "name () from /lib/libc.so.6". */
static bool ends_with_place(oos_view line)
{
    size_t word = line.len;
    while (word && line.ptr[word - 1] != ' ') word--;
    oos_view const place = oos_view_slice(line, word, SIZE_MAX), before = {line.ptr, word};
    bool const told = (word > 6 && memcmp(before.ptr + word - 6, " from ", 6) == 0) ||
                      (word > 4 && memcmp(before.ptr + word - 4, " at ", 4) == 0);
    return told && (memchr(place.ptr, ':', place.len) || memchr(place.ptr, '/', place.len));
}

/* "#12 ", "frame #12: ", "12: " */
static bool is_numbered(oos_view line)
{
    bool const frame = oos_view_starts(line, "frame #");
    size_t const start = frame ? 7 : at(line, 0) == '#' ? 1 : 0, end = behind_digits(line, start);
    if (end == start) return false;
    if (frame) return true;
    if (start == 0 && at(line, end) != ':') return false;
    oos_view const rest = trimmed(oos_view_slice(line, end + (start == 0), SIZE_MAX));
    if (is_address(rest)) return true;
    return start ? ends_with_place(rest) : oos_native_name(rest) == rest.len && rest.len;
}

bool oos_native_is_frame(oos_view line)
{
    line = trimmed(line);
    if (line.len < 4) return false;
    if (line.ptr[0] == '@' && is_address(trimmed(oos_view_slice(line, 1, SIZE_MAX)))) return true;
    if (oos_view_starts(line, "at /") && memchr(line.ptr, ':', line.len)) return true;
    size_t const name = oos_native_name(line);
    if (name && (name == line.len || ends_with_place(oos_view_slice(line, name - 1, SIZE_MAX)))) return true;
    return ends_with_address(line) || is_numbered(line);
}
