/* What --load asks for: REQUESTS:INPUT:OUTPUT with numbers or ranges, or REQUESTS:@FILE with recorded lengths, then words behind
 * commas. And the request number n of it, which is the same whenever it is made. */
#include "cmd_dryrun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 10000000, MOST_PIXELS = 8192 }; /* of a side */

/* SplitMix64: a number from a seed and a place, without a state. */
static uint64_t mixed(uint64_t seed, uint64_t at)
{
    uint64_t z = seed * 0xd1342543de82ef95u + (at + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double mixed_ratio(uint64_t seed, uint64_t at)
{
    return (double)(mixed(seed, at) >> 11) * 0x1p-53;
}

static bool number_read(const char **at, unsigned long most, unsigned *ret_number)
{
    char *end;
    if (**at < '0' || **at > '9') return false;
    errno = 0;
    unsigned long const number = strtoul(*at, &end, 10);
    if (errno || number < 1 || number > most) return false;
    *ret_number = (unsigned)number;
    *at = end;
    return true;
}

static bool range_read(const char **at, dryrun_range *ret_range)
{
    if (!number_read(at, MOST_TOKENS, &ret_range->least)) return false;
    ret_range->most = ret_range->least;
    if (**at != '-') return true;
    ++*at;
    return number_read(at, MOST_TOKENS, &ret_range->most) && ret_range->most >= ret_range->least;
}

static bool real_read(const char **at, double *ret_number)
{
    char *end;
    if ((**at < '0' || **at > '9') && **at != '.') return false;
    *ret_number = strtod(*at, &end);
    *at = end;
    return *ret_number >= 0 && *ret_number < 1e9;
}

/* "5%" */
static bool share_read(const char **at, double *ret_ratio)
{
    if (!real_read(at, ret_ratio) || **at != '%' || *ret_ratio > 100) return false;
    ++*at;
    *ret_ratio /= 100;
    return true;
}

static bool word_begins(const char **at, const char *word)
{
    size_t const len = strlen(word);
    if (strncmp(*at, word, len) != 0) return false;
    *at += len;
    return true;
}

static bool word_read(const char **at, dryrun_mix *mix)
{
    if (word_begins(at, "concurrency=")) return number_read(at, 65535, &mix->concurrency);
    if (word_begins(at, "rate=")) return real_read(at, &mix->rate) && mix->rate > 0;
    if (word_begins(at, "abort=")) return share_read(at, &mix->abort_ratio);
    if (word_begins(at, "prefix=")) return share_read(at, &mix->prefix_ratio);
    if (word_begins(at, "logprobs=")) return number_read(at, 1000, &mix->logprobs);
    if (word_begins(at, "seed=")) return number_read(at, 1000000000, &mix->seed);
    if (word_begins(at, "hang=")) return number_read(at, 86400, &mix->hang_seconds);
    if (word_begins(at, "image="))
        return number_read(at, MOST_PIXELS, &mix->image_width) && *(*at)++ == 'x' &&
               number_read(at, MOST_PIXELS, &mix->image_height);
    if (!word_begins(at, "body={")) return false;
    mix->body = *at; /* the last word: a comma in it is its own */
    size_t const len = strlen(*at);
    *at += len;
    return len > 1 && mix->body[len - 1] == '}';
}

/* Two numbers a line, spaces, tabs or a comma between them; a line that begins with # is passed over. */
static bool lengths_read(dryrun_mix *mix, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        complain("oomsight dryrun: --load: %s: %s", path, strerror(errno));
        return false;
    }
    char line[256];
    unsigned number = 0;
    bool well = true;
    while (well && fgets(line, sizeof line, file)) {
        const char *at = line + strspn(line, " \t");
        dryrun_lengths found;
        number++;
        if (*at == '#' || *at == '\n' || *at == '\0') continue;
        well = number_read(&at, MOST_TOKENS, &found.input);
        at += strspn(at, " \t,");
        well = well && number_read(&at, MOST_TOKENS, &found.output) && at[strspn(at, " \t\r\n")] == '\0';
        dryrun_lengths *more =
            well ? realloc(mix->lengths, (mix->length_count + 1) * sizeof *mix->lengths) : NULL;
        if (!more) break;
        mix->lengths = more;
        mix->lengths[mix->length_count++] = found;
    }
    fclose(file);
    if (well && mix->length_count) return true;
    if (well)
        complain("oomsight dryrun: --load: %s: no lengths in it", path);
    else
        complain("oomsight dryrun: --load: %s:%u: a line has the tokens of a prompt and of its answer, e.g. "
                 "512 64",
                 path, number);
    return false;
}

static bool wrong(const char *value)
{
    complain("oomsight dryrun: --load takes REQUESTS:INPUT:OUTPUT or REQUESTS:@FILE, e.g. 200:512:256 or "
             "500:16-512:8-64,concurrency=32,abort=5%%,logprobs=5, not '%s'",
             value);
    return false;
}

bool dryrun_mix_read(const char *value, dryrun_mix *ret_mix)
{
    dryrun_mix mix = {.seed = 1, .hang_seconds = 60};
    const char *at = value;
    if (!number_read(&at, 4000000000u, &mix.requests) || *at++ != ':') return wrong(value);
    if (*at == '@') {
        char path[1024];
        size_t const len = strcspn(++at, ",");
        if (len == 0 || len >= sizeof path) return wrong(value);
        memcpy(path, at, len);
        path[len] = '\0';
        at += len;
        if (!lengths_read(&mix, path)) return false;
    } else if (!range_read(&at, &mix.input) || *at++ != ':' || !range_read(&at, &mix.output))
        return wrong(value);
    while (*at == ',') {
        at++;
        if (!word_read(&at, &mix)) return wrong(value);
    }
    if (*at) return wrong(value);
    *ret_mix = mix;
    return true;
}

static unsigned drawn(const dryrun_mix *mix, dryrun_range range, uint64_t at)
{
    return range.least + (unsigned)(mixed(mix->seed, at) % (range.most - range.least + 1u));
}

dryrun_lengths dryrun_mix_lengths(const dryrun_mix *mix, unsigned number)
{
    if (mix->length_count) return mix->lengths[number % mix->length_count];
    return (dryrun_lengths){drawn(mix, mix->input, 3ull * number),
                            drawn(mix, mix->output, 3ull * number + 1)};
}

bool dryrun_mix_aborts(const dryrun_mix *mix, unsigned number)
{
    return mix->abort_ratio > 0 && mixed_ratio(mix->seed, 3ull * number + 2) < mix->abort_ratio;
}

/* Token numbers: those that all requests share, then the request's own. Small ones, which every vocabulary has. */
static void put_prompt(FILE *out, const dryrun_mix *mix, unsigned number, unsigned tokens)
{
    unsigned const shared = (unsigned)(mix->prefix_ratio * tokens);
    uint64_t const own = mixed(mix->seed, ~(uint64_t)number), all = mixed(mix->seed, 1ull << 62);
    for (unsigned i = 0; i < tokens; i++)
        fprintf(out, "%s%u", i ? "," : "", 3 + (unsigned)(mixed(i < shared ? all : own, i) % 997u));
}

const char *dryrun_mix_path(const dryrun_mix *mix)
{
    return mix->image_width ? "/v1/chat/completions" : "/v1/completions";
}

/* Words of the stub tokenizer, about a token each, and an image: how many tokens that is only the engine knows. */
static bool put_chat(FILE *out, const dryrun_mix *mix, unsigned number, unsigned tokens)
{
    fputs("\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"",
          out);
    bool const done = dryrun_image_put(out, mix->image_width, mix->image_height, number);
    fputs("\"}},{\"type\":\"text\",\"text\":\"", out);
    for (unsigned i = 0; i < tokens; i++)
        fprintf(out, "%sw%u", i ? " " : "", 3 + (unsigned)(mixed(mix->seed + number, i) % 997u));
    fputs("\"}]}]", out);
    return done;
}

char *dryrun_mix_body(const dryrun_mix *mix, const char *model, unsigned number, size_t *ret_len)
{
    char *body = NULL;
    FILE *out = open_memstream(&body, ret_len);
    if (!out) return NULL;
    dryrun_lengths const lengths = dryrun_mix_lengths(mix, number);
    fputs("{\"model\":\"", out);
    for (; *model; model++) {
        if (*model == '"' || *model == '\\') fputc('\\', out);
        fputc(*model, out);
    }
    bool whole = true;
    fputs("\",", out);
    if (mix->image_width)
        whole = put_chat(out, mix, number, lengths.input);
    else {
        fputs("\"prompt\":[", out);
        put_prompt(out, mix, number, lengths.input);
        fputs("]", out);
    }
    fprintf(out, ",\"max_tokens\":%u,\"temperature\":1.0,\"ignore_eos\":true", lengths.output);
    if (mix->logprobs)
        fprintf(out, mix->image_width ? ",\"logprobs\":true,\"top_logprobs\":%u" : ",\"logprobs\":%u",
                mix->logprobs);
    if (dryrun_mix_aborts(mix, number)) fputs(",\"stream\":true", out);
    fprintf(out, "%s%s", mix->body ? "," : "}", mix->body ? mix->body : ""); /* it brings its bracket */
    if (fclose(out) == 0 && whole) return body;
    free(body);
    return NULL;
}
