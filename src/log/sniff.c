/* Control characters tell bytes from text, a title or the first line of a source file tells a document from a log. */
#include "log/log.h"
#include "base/ascii.h"

enum {
    CONTROLS_LEAST = 8,
    TEXT_PER_CONTROL = 30, /* random bytes have a control character in ten */
    TITLE_MAX_BYTES = 160
};

/* Not of terminals: colours, bells, backspaces, pages. */
static bool is_control(unsigned char c)
{
    return c && (c < 7 || (c > 13 && c < 32 && c != 27) || c == 127);
}

bool oos_sniff_binary(oos_view head, bool whole)
{
    size_t controls = 0, zeros = 0;
    for (size_t i = 0; i < head.len; i++) {
        controls += is_control((unsigned char)head.ptr[i]);
        zeros += head.ptr[i] == '\0';
    }
    if (whole && zeros && zeros == head.len) return true;
    return controls > CONTROLS_LEAST && controls > (head.len - zeros) / TEXT_PER_CONTROL;
}

static oos_view next_line(oos_view *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t const len = end ? (size_t)(end - rest->ptr) : rest->len;
    oos_view line = oos_view_slice(*rest, 0, len);
    *rest = oos_view_slice(*rest, len + (end != NULL), SIZE_MAX);
    while (line.len && oos_is_space(line.ptr[line.len - 1])) line.len--;
    return line;
}

static oos_view first_line(oos_view *rest)
{
    oos_view line = next_line(rest);
    while (!line.len && rest->len) line = next_line(rest);
    return line;
}

static bool holds(oos_view line, const char *word)
{
    return line.len && memmem(line.ptr, line.len, word, strlen(word));
}

/* "key: value", not indented. */
static bool is_setting(oos_view line)
{
    size_t key = 0;
    while (key < line.len && (oos_is_alnum(line.ptr[key]) || line.ptr[key] == '_')) key++;
    return key > 0 && key < line.len && line.ptr[key] == ':';
}

/* Settings and comments that may stand before a title. *ret_settings: settings did, as a page has them. */
static oos_view skip_matter(oos_view line, oos_view *rest, bool *ret_settings)
{
    *ret_settings = false;
    if (oos_view_is(line, "---")) {
        bool flat = true;
        while (rest->len && !oos_view_is(line = next_line(rest), "---")) flat = flat && is_setting(line);
        bool const closed = oos_view_is(line, "---");
        line = first_line(rest);
        *ret_settings = flat && closed && !is_setting(line);
    }
    while (oos_view_starts(line, "<!--") && rest->len) {
        while (rest->len && !holds(line, "-->")) line = next_line(rest);
        line = first_line(rest);
    }
    return line;
}

static bool is_underline(oos_view line, size_t title)
{
    size_t len = 0;
    while (len < line.len && line.ptr[len] == '=') len++;
    return len > 2 && len == line.len && len + 1 >= title && len <= title + 1;
}

bool oos_sniff_document(oos_view head)
{
    static const char *const openings[] = {".TH ",     ".\\\" ",     ".Dd ", "<h1",
                                           "<p align", "<div align", "<img "};
    if (oos_view_starts(head, "\xef\xbb\xbf")) head = oos_view_slice(head, 3, SIZE_MAX);
    oos_view rest = head, line = first_line(&rest);
    bool settings;
    line = skip_matter(line, &rest, &settings);
    if (settings) return true;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
        if (oos_view_starts(line, openings[i])) return true;
    if (!line.len || line.len > TITLE_MAX_BYTES) return false;
    bool const last = !rest.len;
    oos_view const next = next_line(&rest);
    if (is_underline(next, line.len)) return true;
    /* A shell's prompt, or a comment of a script, has something right below it. */
    size_t marks = 0;
    while (marks < line.len && line.ptr[marks] == '#') marks++;
    return marks && marks + 1 < line.len && line.ptr[marks] == ' ' && line.ptr[marks + 1] > ' ' &&
           !next.len && !last;
}

static bool starts_with_any(oos_view line, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (oos_view_starts(line, words[i])) return true;
    return false;
}

static oos_view unindented(oos_view line)
{
    while (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t')) line = oos_view_slice(line, 1, SIZE_MAX);
    return line;
}

/* "name = value", "name[0].field += value": no sentence has it as its second word. */
static bool is_assigned(oos_view line)
{
    const char *blank = line.len ? memchr(line.ptr, ' ', line.len) : NULL;
    if (!blank) return false;
    oos_view const after = oos_view_slice(line, (size_t)(blank - line.ptr) + 1, SIZE_MAX);
    return oos_view_starts(after, "= ") || oos_view_starts(after, "+= ") || oos_view_starts(after, "|= ");
}

static bool is_code(oos_view line)
{
    static const char *const words[] = {
        "#",       "/*",      "*",      "//",    "\"\"\"",    "import ", "from ",   "def ",     "class ",
        "return",  "if ",     "elif ",  "else",  "for ",      "while ",  "try:",    "except",   "with ",
        "static ", "const ",  "let ",   "var ",  "function ", "switch",  "case ",   "enum",     "struct",
        "extern",  "typedef", "assert", "yield", "raise ",    "local ",  "export ", "template", "@"};
    char const last = line.ptr[line.len - 1];
    return memchr(";{}(\\", last, 5) || (last == ')' && memchr(line.ptr, '(', line.len)) ||
           (line.len > 1 && strchr(")}]\"'", line.ptr[line.len - 2]) && (last == ',' || last == ':')) ||
           (last == ',' && (memchr(line.ptr, ':', line.len) || memchr(line.ptr, '=', line.len))) ||
           starts_with_any(line, words, sizeof words / sizeof *words) || is_assigned(line);
}

/* "torch.OutOfMemoryError: ...", "CUDA error: ...", from the first column on. */
static bool is_raised(oos_view line)
{
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
    size_t const len = colon ? (size_t)(colon - line.ptr) : 0;
    oos_view const name = oos_view_slice(line, 0, len);
    if (!len) return false;
    for (size_t i = 0; i < len; i++)
        if (!oos_is_alnum(name.ptr[i]) && !strchr("._ ", name.ptr[i])) return false;
    if (line.ptr[0] == ' ' || oos_view_starts(name, "except ") || len + 2 >= line.len || colon[1] != ' ')
        return false;
    return len > 5 && (memcmp(colon - 5, "Error", 5) == 0 || memcmp(colon - 5, "error", 5) == 0 ||
                       (len > 9 && memcmp(colon - 9, "Exception", 9) == 0));
}

/* `--flag`, `-f` or `NAME=value`, at the beginning of a word, also of a quoted one. */
static bool has_setting(oos_view line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (i && !strchr(" `\"'(", line.ptr[i - 1])) continue;
        oos_view const word = oos_view_slice(line, i, SIZE_MAX);
        size_t name = 0;
        while (name < word.len && word.ptr[name] == '-' && name < 2) name++;
        if (name && name < word.len && oos_is_alpha(word.ptr[name])) return true;
        while (name < word.len && ((word.ptr[name] >= 'A' && word.ptr[name] <= 'Z') || word.ptr[name] == '_'))
            name++;
        if (name > 2 && name < word.len && word.ptr[name] == '=') return true;
    }
    return false;
}

/* "I get", "my card", "we run": whoever reports. */
static bool is_personal(oos_view line)
{
    static const char *const words[] = {"i", "my", "me", "we", "our", "us"};
    for (size_t at = 0, end; at < line.len; at = end + 1) {
        for (end = at; end < line.len && oos_is_alpha(line.ptr[end]);) end++;
        bool const joined = end < line.len && strchr("/_-.:=", line.ptr[end]); /* I/O */
        for (size_t i = 0; i < sizeof words / sizeof *words && !joined; i++) {
            size_t len = 0;
            while (at + len < end && words[i][len] && oos_lower(line.ptr[at + len]) == words[i][len]) len++;
            if (len && at + len == end && !words[i][len]) return true;
        }
    }
    return false;
}

bool oos_sniff_page(oos_view head)
{
    size_t ways = 0;
    bool fenced = false, told = false; /* the block at hand has its setting */
    for (oos_view rest = head; rest.len;) {
        oos_view const line = next_line(&rest), words = unindented(line);
        bool const fence = oos_view_starts(words, "```") || oos_view_starts(words, "~~~");
        bool const block = fenced || oos_view_starts(line, "    ") || oos_view_starts(line, "\t");
        if (oos_logline_read(line).labelled || oos_logline_read(words).labelled || holds(line, "File \"") ||
            oos_view_starts(words, "Traceback ("))
            return false;
        fenced ^= fence;
        if (fence || !words.len) continue;
        if (!block && is_personal(words)) return false;
        if (!block) told = false;
        if (told || !has_setting(words)) continue;
        ways++;
        told = block;
    }
    return ways > 1;
}

bool oos_sniff_source(oos_view head)
{
    static const char *const openings[] = {
        "#!",     "#include",    "#pragma",  "#define ",     "#if",           "/*",
        "//",     "\"\"\"",      "import ",  "package ",     "use ",          "using ",
        "def ",   "class ",      "static ",  "const ",       "export ",       "function ",
        "# SPDX", "# Copyright", "template", "'use strict'", "\"use strict\""};
    size_t lines = 0, code = 0;
    oos_view rest = head, line = first_line(&rest);
    bool const opens = starts_with_any(line, openings, sizeof openings / sizeof *openings) ||
                       (oos_view_starts(line, "from ") && holds(line, " import "));
    if (!opens) return false;
    for (; line.len; line = first_line(&rest)) {
        /* What was printed is read, whatever stands around it. */
        if (oos_view_starts(line, "Traceback (") || is_raised(line) || oos_logline_read(line).labelled)
            return false;
        lines++;
        code += is_code(unindented(line));
    }
    return lines > 2 && 2 * code >= lines;
}
