/* Numbers as people write them, which no parser of an engine takes: `10,000`, `32 k`, `32KiB`, `1e4`, `8192 tokens`, `90%`, `0,9`.
 * What was meant is offered as the correction of the refused command; what can be read in two ways is left out. */
#include "command/command.h"
#include "base/check.h"
#include "base/locale.h"

#include <math.h>

enum { NUMBER_MAX = 40 };

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A separator with three digits behind it, and a digit before: "10,000", "1.048.576" ("0,900" is none). */
static bool groups(const char *text, char separator)
{
    size_t before = strspn(text, "0123456789"), count = 0;
    if (before < 1 || before > 3 || *text == '0') return false;
    for (text += before; *text == separator; text += 4, count++)
        if (!digit(text[1]) || !digit(text[2]) || !digit(text[3]) || digit(text[4])) return false;
    return count && !strpbrk(text, ".,' ");
}

/* Without the separator of its groups, and without the spaces before a unit. */
static void join(char *text, char separator)
{
    char *to = text;
    for (; *text; text++)
        if (*text != separator && *text != ' ') *to++ = *text;
    *to = '\0';
}

/* "32KiB", "32kb": without the word for bytes; "8192 tokens": without a word that has no unit in it. */
static void unit_cut(char *text)
{
    size_t const number = strspn(text, "0123456789.,_'");
    char *word = text + number + strspn(text + number, " ");
    size_t const len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (!number || word[len]) return;
    if (len > 3 || (len && !strchr("kKmMgGtT", *word)))
        text[number] = '\0';
    else if (len > 1 && (word[len - 1] == 'B' || word[len - 1] == 'b'))
        word[len - 1] = '\0';
}

/* A number with a unit that the flag does not take, written out; 1e4 too. K, Ki: 1,024; k: 1,000. */
static const char *written_out(oos_arena *arena, const char *text)
{
    static const oos_flag_form any = {.suffixes = "kmgtKMGT"};
    char plain[NUMBER_MAX + 1], *end;
    bool negative;
    uint64_t whole;
    size_t const len = strlen(text);
    oos_assert(len <= NUMBER_MAX);
    memcpy(plain, text, len + 1);
    if (len > 2 && plain[len - 1] == 'i' && strchr("kKMGT", plain[len - 2])) {
        plain[len - 1] = '\0';
        if (plain[len - 2] == 'k') plain[len - 2] = 'K';
    }
    if (!oos_serve_int(&any, plain, &negative, &whole)) {
        double const real = oos_real_read(plain, &end);
        if (end == plain || *end || !(real >= 1) || real >= 0x1p53 || real != floor(real)) return NULL;
        whole = (uint64_t)real;
    }
    return negative ? NULL : oos_arena_format(arena, "%llu", (unsigned long long)whole);
}

static const char *int_meant(oos_arena *arena, const oos_flag_form *form, char *text)
{
    static const char separators[] = ",.' ";
    bool negative;
    uint64_t whole;
    unit_cut(text);
    for (const char *s = separators; *s; s++)
        if (groups(text, *s)) {
            join(text, *s);
            break;
        }
    join(text, ' ');
    if (oos_serve_int(form, text, &negative, &whole))
        return negative ? NULL : oos_arena_copy(arena, oos_view_of(text));
    return written_out(arena, text);
}

static const char *float_meant(oos_arena *arena, bool is_share, char *text)
{
    double number;
    join(text, ' ');
    oos_assert(!strchr(text, ' '));
    char *const comma = strchr(text, ','), *const percent = strchr(text, '%');
    if (comma && !strchr(text, '.') && !strchr(comma + 1, ',')) *comma = '.';
    if (percent && !percent[1] && is_share) *percent = '\0';
    if (!oos_serve_float(text, &number) || !(number >= 0)) return NULL;
    return percent ? oos_arena_format(arena, "%g", number / 100) : oos_arena_copy(arena, oos_view_of(text));
}

const char *oos_serve_number_meant(oos_arena *arena, const oos_flag_form *form, const char *wanted,
                                   bool is_share, const char *given)
{
    char text[NUMBER_MAX + 1];
    size_t const len = strlen(given);
    if (len > NUMBER_MAX) return NULL;
    memcpy(text, given, len + 1);
    return strcmp(wanted, "int") == 0     ? int_meant(arena, form, text)
           : strcmp(wanted, "float") == 0 ? float_meant(arena, is_share, text)
                                          : NULL;
}
