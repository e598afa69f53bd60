/* The parts that all mutators use: chance, room, numbers, lines. */
#include "mutate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t chance = 1;

void fuzz_seed(unsigned seed)
{
    chance = seed * 0x9E3779B97F4A7C15u + 1;
}

size_t fuzz_pick(size_t count)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return count ? (size_t)(chance % count) : 0;
}

bool fuzz_replace(fuzz_input *input, fuzz_part *part, size_t at, size_t old_len, const char *piece,
                  size_t len)
{
    size_t const kept = input->len - old_len;
    if (at + old_len > input->len || len > input->max - kept) return false;
    memmove(input->bytes + at + len, input->bytes + at + old_len, input->len - at - old_len);
    if (len) memcpy(input->bytes + at, piece, len);
    input->len = kept + len;
    part->end = part->end - old_len + len;
    return true;
}

const char *fuzz_number(void)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "7",
                                          "8",
                                          "16",
                                          "31",
                                          "32",
                                          "64",
                                          "80",
                                          "127",
                                          "128",
                                          "255",
                                          "256",
                                          "512",
                                          "1024",
                                          "2048",
                                          "4096",
                                          "5120",
                                          "8192",
                                          "32768",
                                          "65535",
                                          "65536",
                                          "131072",
                                          "0.5",
                                          "0.9",
                                          "0.98",
                                          "1.0",
                                          "1e-6",
                                          "1e3",
                                          "151936",
                                          "1000000",
                                          "16777216",
                                          "2147483647",
                                          "1e300",
                                          "4294967296",
                                          "9007199254740993",
                                          "18446744073709551615",
                                          "-9223372036854775808",
                                          "99999999999999999999999"};
    static char number[32];
    if (fuzz_pick(3)) return numbers[fuzz_pick(sizeof numbers / sizeof *numbers)];
    snprintf(number, sizeof number, "%llu", 1ull << fuzz_pick(64));
    return number;
}

static size_t digits_at(const char *text, size_t at, size_t end)
{
    size_t len = 0;
    while (at + len < end && isdigit((unsigned char)text[at + len])) len++;
    return len;
}

bool fuzz_mutate_number(fuzz_input *input, fuzz_part *part)
{
    if (part->begin >= part->end) return false;
    size_t const from = part->begin + fuzz_pick(part->end - part->begin);
    for (size_t i = 0; i < part->end - part->begin; i++) {
        size_t const at = part->begin + (from - part->begin + i) % (part->end - part->begin);
        bool const inside = at > part->begin && isdigit((unsigned char)input->bytes[at - 1]);
        size_t const len = inside ? 0 : digits_at(input->bytes, at, part->end);
        if (!len) continue;
        char scaled[32];
        const char *piece = fuzz_number();
        if (len < 19 && fuzz_pick(2)) { /* near what stood there */
            static const unsigned long long times[] = {1, 2, 3, 10, 100, 1024};
            unsigned long long const old = strtoull(input->bytes + at, NULL, 10);
            unsigned long long const factor = times[fuzz_pick(6)];
            snprintf(scaled, sizeof scaled, "%llu",
                     fuzz_pick(2) ? old / factor : old * factor + fuzz_pick(3) - 1);
            piece = scaled;
        }
        return fuzz_replace(input, part, at, len, piece, strlen(piece));
    }
    return false;
}

/* ---- lines ---- */

enum { PIECE_MAX = 16 << 10 };

/* The line around a place of the stretch, its line feed with it. */
static fuzz_part line_at(const fuzz_input *input, const fuzz_part *part, size_t at)
{
    fuzz_part line = {at, at};
    while (line.begin > part->begin && input->bytes[line.begin - 1] != '\n') line.begin--;
    while (line.end < part->end && input->bytes[line.end] != '\n') line.end++;
    if (line.end < part->end) line.end++;
    return line;
}

static fuzz_part any_line(const fuzz_input *input, const fuzz_part *part)
{
    return line_at(input, part, part->begin + fuzz_pick(part->end - part->begin));
}

/* One to eight lines that follow one another. */
static fuzz_part some_lines(const fuzz_input *input, const fuzz_part *part)
{
    fuzz_part lines = any_line(input, part);
    for (size_t more = fuzz_pick(8); more && lines.end < part->end; more--)
        lines.end = line_at(input, part, lines.end).end;
    return lines;
}

void fuzz_mutate_lines(fuzz_input *input, fuzz_part *part)
{
    static char piece[PIECE_MAX];
    if (part->begin == part->end) return;
    fuzz_part const lines = some_lines(input, part), to = any_line(input, part);
    size_t const len = lines.end - lines.begin;
    if (len == 0 || len > sizeof piece) return;
    memcpy(piece, input->bytes + lines.begin, len);
    switch (fuzz_pick(6)) {
    case 0: fuzz_replace(input, part, lines.begin, len, "", 0); break;
    case 1: fuzz_replace(input, part, to.begin, 0, piece, len); break;
    case 2: /* moved */
        if (fuzz_replace(input, part, lines.begin, len, "", 0)) {
            fuzz_part const at = part->begin < part->end ? any_line(input, part) : *part;
            fuzz_replace(input, part, at.begin, 0, piece, len);
        }
        break;
    case 3:
        fuzz_replace(input, part, lines.begin + fuzz_pick(len), 0, fuzz_pick(2) ? "\n" : "\r\n",
                     1 + fuzz_pick(2));
        break;
    case 4: /* joined with the next */
        if (input->bytes[lines.end - 1] == '\n')
            fuzz_replace(input, part, lines.end - 1, 1, " ", fuzz_pick(2));
        break;
    default: fuzz_mutate_number(input, part); break;
    }
}
