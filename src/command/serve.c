/* Reading the serve command, word by word, as the engine's argument parser would. What a value means is left to
 * serve_value.c and serve_json.c, the entry to serve_entry.c, Python keywords to serve_llm.c. */
#include "command/command.h"
#include "base/file.h"
#include "base/locale.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

enum { CONFIG_FILE_MAX = 1 << 20 };

void oos_serve_note(oos_serve_reader *in, oos_given_flag flag)
{
    if (in->flag_count < in->flag_capacity) in->flags[in->flag_count++] = flag;
}

static oomsight_status nomem(oos_serve_reader *in)
{
    return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for the command");
}

/* A flag that went with a release that is known; a newer one may have it again, in another form. */
static bool may_be_another(const oos_serve_reader *in, const char *flag)
{
    if (!oos_serve_newer(in)) return false;
    oos_flag_hit const hit = oos_flags_find(in->table, oos_view_of(flag), in->version);
    return hit.record && !hit.here;
}

oomsight_status oos_serve_refuse(oos_serve_reader *in, const char *flag, const char *value,
                                 const char *format, ...)
{
    char text[512];
    va_list list;
    if (in->serve->refusal.sentence) return OOMSIGHT_OK;
    va_start(list, format);
    oos_vformat(text, sizeof text, format, list);
    va_end(list);
    in->serve->refusal = (oos_serve_refusal){.sentence = oos_arena_copy(in->arena, oos_view_of(text)),
                                             .flag = oos_arena_copy(in->arena, oos_view_of(flag)),
                                             .value = value,
                                             .may_be_over = may_be_another(in, flag)};
    return in->serve->refusal.sentence && in->serve->refusal.flag ? OOMSIGHT_OK : nomem(in);
}

bool oos_serve_newer(const oos_serve_reader *in)
{
    return in->version > in->table->versions[in->table->version_count - 1];
}

static void nearest_put(oos_serve_reader *in, const oos_given_flag *unknown)
{
    in->serve->refusal.nearest = unknown->nearest;
    in->serve->refusal.misspelt = unknown->name;
    in->serve->refusal.meant_value = unknown->value;
}

/* argparse names what it did not understand when everything else is read. */
static oomsight_status unrecognized_end(oos_serve_reader *in)
{
    const oos_given_flag *first = NULL;
    char text[400];
    size_t len = 0;
    for (size_t i = 0; i < in->flag_count; i++) {
        const oos_given_flag *flag = &in->flags[i];
        if (flag->effect != OOS_FLAG_UNKNOWN && !flag->absent) continue;
        if (oos_serve_newer(in) && !flag->absent)
            continue; /* perhaps it has come; what went seldom comes back */
        if (!first) first = flag;
        int const more = snprintf(text + len, sizeof text - len, " %s%s%s", flag->name,
                                  flag->value ? " " : "", flag->value ? flag->value : "");
        if (more < 0 || (size_t)more >= sizeof text - len) break;
        len += (size_t)more;
    }
    if (!first && in->stray_of) {
        bool const mine = !in->serve->refusal.sentence;
        OOS_TRY(oos_serve_refuse(in, in->stray_of, in->stray, "unrecognized arguments: %.80s", in->stray));
        if (mine) in->serve->refusal.nearest = in->stray_meant;
        return OOMSIGHT_OK;
    }
    if (!first || in->python) return OOMSIGHT_OK;
    bool const mine = !in->serve->refusal.sentence;
    oomsight_status const status =
        oos_serve_refuse(in, text + 1, first->value, "unrecognized arguments:%s", text);
    if (mine) {
        const oos_given_flag *meant = first;
        for (size_t i = 0; i < in->flag_count && !meant->nearest; i++)
            if (in->flags[i].effect == OOS_FLAG_UNKNOWN) meant = &in->flags[i];
        nearest_put(in, meant);
        in->serve->refusal.unrecognized = true;
        in->serve->refusal.may_be_over = oos_serve_newer(in);
    }
    return status;
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

/* argparse: a word is a flag when it begins with a dash, unless it is a number without an exponent or has a space in it. */
static bool flag_like(const char *word)
{
    static const char digits[] = "0123456789";
    if (word[0] != '-' || word[1] == '\0') return false;
    const char *at = word + 1 + strspn(word + 1, digits);
    size_t const places = *at == '.' ? strspn(at + 1, digits) : 0;
    if (places ? !at[1 + places] : !*at) return false;
    return word[strcspn(word, " =")] != ' ';
}

static bool takes_dots(const oos_serve_reader *in)
{
    return in->table->dotted_since && in->version >= in->table->dotted_since;
}

static bool takes_underscores(const oos_serve_reader *in)
{
    return in->table->underscores_since && in->version >= in->table->underscores_since;
}

/* The engine takes `-0.1` for dotted keys of a flag `-0`, with the next word as their value. */
static oomsight_status dotted_number(oos_serve_reader *in, oos_serve_cursor *c, const oos_flag_record *record,
                                     const char **ret_value)
{
    const char *number = *ret_value;
    c->at++;
    if (c->at == c->count) { /* before anything else is looked at */
        in->serve->refusal = (oos_serve_refusal){0};
        return oos_serve_refuse(in, record->name, number, "list index out of range");
    }
    c->at++;
    if (c->at ==
        c->count) { /* the pair is put behind all other words: its first half is a number again, and the value */
        const char *pair =
            oos_arena_format(in->arena, "{\"%s\": \"%s\"}", strchr(number, '.') + 1, c->words[c->at - 1]);
        if (!pair) return nomem(in);
        oos_serve_note(in, (oos_given_flag){.name = pair, .effect = OOS_FLAG_UNKNOWN});
        *ret_value = "-0";
        return OOMSIGHT_OK;
    }
    oos_serve_note(in, (oos_given_flag){.name = number, .effect = OOS_FLAG_UNKNOWN});
    if (c->at < c->count && !flag_like(c->words[c->at])) {
        *ret_value = c->words[c->at++];
        return OOMSIGHT_OK;
    }
    *ret_value = NULL;
    return oos_serve_refuse(in, record->name, number, "argument %s: expected one argument",
                            oos_serve_argument(in, record, NULL));
}

/* The words that belong to a flag, joined by spaces. NULL with least 0: none. */
static oomsight_status values_take(oos_serve_reader *in, oos_serve_cursor *c, const oos_flag_record *record,
                                   unsigned least, unsigned most, const char **ret_value)
{
    size_t count = 0, bytes = 0;
    while (count < most && c->at + count < c->count && !flag_like(c->words[c->at + count]))
        bytes += strlen(c->words[c->at + count++]) + 1;
    if (count < least) {
        *ret_value = NULL;
        c->at += count;
        return oos_serve_refuse(in, record->name, NULL,
                                least == 1                     ? "argument %s: expected one argument"
                                : most == OOS_FLAG_VALUES_MANY ? "argument %s: expected at least one argument"
                                                               : "argument %s: expected more arguments",
                                oos_serve_argument(in, record, NULL));
    }
    *ret_value = NULL;
    if (count == 1) {
        *ret_value = c->words[c->at];
        if (**ret_value == '-' && strchr(*ret_value, '.') && takes_dots(in))
            return dotted_number(in, c, record, ret_value);
    } else if (count > 1 || most == OOS_FLAG_VALUES_MANY) {
        char *joined = oos_arena_take(in->arena, bytes + 1), *out = joined;
        if (!joined) return nomem(in);
        for (size_t i = 0; i < count; i++) {
            size_t const len = strlen(c->words[c->at + i]);
            if (i) *out++ = ' ';
            memcpy(out, c->words[c->at + i], len);
            out += len;
        }
        *ret_value = joined;
    }
    c->at += count;
    return OOMSIGHT_OK;
}

/* A flag nobody knows: say what is closest, and go on. Whether the next word is its value cannot be known; it is taken
 * for one, unless a model is still missing when all words are read. */
oomsight_status oos_serve_unknown(oos_serve_reader *in, oos_serve_cursor *c, oos_view key, const char *value)
{
    const char *nearest = oos_flags_nearest(in->table, key, in->version);
    const char *name = oos_arena_copy(in->arena, key);
    if (!name) return nomem(in);
    if (!value && c->at < c->count && !flag_like(c->words[c->at])) value = c->words[c->at++];
    if (nearest) nearest = oos_arena_copy(in->arena, oos_view_of(nearest));
    oos_given_flag flag = {.name = name, .value = value, .effect = OOS_FLAG_UNKNOWN, .nearest = nearest};
    if (in->bench || oos_serve_listed(in->serve->words.own, name)) {
        flag.effect = OOS_FLAG_NO_MEMORY;
        flag.nearest = NULL;
        flag.note = in->bench ? "a flag of the benchmark, not of the engine"
                              : "a flag of the sub-command, not of the engine";
    }
    oos_serve_note(in, flag);
    return OOMSIGHT_OK;
}

/* -n4: one letter with its value behind it. */
static oos_flag_hit find_glued(oos_serve_reader *in, oos_view key, const char **ret_value)
{
    oos_flag_hit const none = {0};
    if (key.len < 3 || key.ptr[1] == '-') return none;
    oos_flag_hit const hit = oos_flags_find(in->table, oos_view_slice(key, 0, 2), in->version);
    if (!hit.record || hit.form->most_values == 0) return none;
    *ret_value = key.ptr + 2;
    return hit;
}

/* `--switch=value`: argparse stops there. What was meant is the switch itself, or its twin. */
static oomsight_status explicit_refuse(oos_serve_reader *in, oos_flag_hit hit, const char *value)
{
    const oos_flag_record *record = hit.record;
    bool const first = !in->serve->refusal.sentence;
    OOS_TRY(oos_serve_refuse(in, record->name, value, "argument %s: ignored explicit argument '%.80s'",
                             oos_serve_argument(in, record, hit.form), value));
    if (first) in->serve->refusal.nearest = oos_serve_switch_meant(hit, value);
    return OOMSIGHT_OK;
}

/* The spellings of this release that begin with the word, as many as a line holds. */
static const char *beginnings(oos_serve_reader *in, oos_view key)
{
    oos_text list = {0};
    for (size_t i = 0; i < in->table->count && list.len < 240; i++) {
        const oos_flag_record *record = &in->table->list[i];
        for (size_t k = 0; k <= record->alias_count; k++) {
            const char *name = k ? record->aliases[k - 1] : record->name;
            oos_flag_hit const hit = oos_flags_find(in->table, oos_view_of(name), in->version);
            if ((strlen(name) < key.len || memcmp(name, key.ptr, key.len) != 0) || !hit.here) continue;
            oos_text_printf(&list, "%s%s", list.len ? ", " : "", name);
        }
    }
    const char *copy = oos_arena_copy(in->arena, (oos_view){list.ptr ? list.ptr : "", list.len});
    oos_text_free(&list);
    return copy ? copy : "";
}

/* argparse looks at all words for this before it reads any of them. */
static oomsight_status ambiguous_refuse(oos_serve_reader *in, oos_serve_cursor *c, oos_view key,
                                        const char *value)
{
    const char *word = c->words[c->at - 1];
    OOS_TRY(oos_serve_unknown(in, c, key, value));
    oos_version below, above;
    oos_flags_neighbours(in->table, in->version, &below, &above);
    if (in->ambiguous || below != in->version) return OOMSIGHT_OK; /* its own parser was not read */
    in->ambiguous = true;
    in->serve->refusal = (oos_serve_refusal){0};
    const oos_given_flag *unknown = &in->flags[in->flag_count - 1];
    OOS_TRY(oos_serve_refuse(in, unknown->name, value, "ambiguous option: %.80s could match %s", word,
                             beginnings(in, key)));
    nearest_put(in, unknown);
    return OOMSIGHT_OK;
}

/* `-O 3` as one word: the engine looks for it before argparse does. */
static bool is_first(const oos_serve_reader *in, const char *word)
{
    return in->dialect->first_letter && word[0] == '-' && word[1] == in->dialect->first_letter;
}

static oomsight_status flag_take(oos_serve_reader *in, oos_serve_cursor *c)
{
    const char *word = c->words[c->at++];
    if (is_first(in, word)) return in->dialect->first_take(in, c, word);
    size_t len = 0, dot = 0;
    for (; word[len] && word[len] != '='; len++)
        if (word[len] == '.' && !dot && in->table->dotted_since) dot = len;
    const char *value = word[len] ? word + len + 1 : NULL;
    oos_view const key = {word, len}, base = {word, dot ? dot : len};

    bool several = false, ignored;
    oos_flag_hit hit = in->bench ? oos_flags_find(in->table, base, in->version)
                                 : oos_flags_find_start(in->table, base, in->version, &several);
    if (several) return ambiguous_refuse(in, c, key, value);
    if (hit.record && memchr(base.ptr, '_', base.len) && !takes_underscores(in))
        return oos_serve_unknown(in, c, key, value);
    if (!hit.record && !value) hit = find_glued(in, base, &value);
    if (!hit.record || (dot && hit.form->kind != OOS_FLAG_KIND_JSON))
        return oos_serve_unknown(in, c, key, value);
    if (dot) {
        char *keys = oos_arena_copy(in->arena, (oos_view){word + dot + 1, len - dot - 1});
        if (!keys) return nomem(in);
        if (!value && c->at < c->count) value = c->words[c->at++];
        if (!value) return oos_serve_refuse(in, word, NULL, "argument %s: expected one argument", word);
        return oos_serve_take_dotted(in, hit, keys, value);
    }
    const oos_flag_form *form = hit.form;
    if (value && form->most_values == 0 && hit.here) OOS_TRY(explicit_refuse(in, hit, value));
    if (!value) {
        OOS_TRY(values_take(in, c, hit.record, form->least_values, form->most_values, &value));
        if (!value && form->least_values) return OOMSIGHT_OK; /* refused */
        /* `--enable-x true` where the engine takes no value: it would stop at the word, and people do write it */
        if (form->most_values == 0 && c->at < c->count && oos_serve_truth(c->words[c->at], &ignored))
            value = c->words[c->at++];
    }
    return oos_serve_take(in, hit, value);
}

/* Which words a flag was given with, and where the parser stopped. */
static void place_keep(oos_serve_reader *in, size_t first_flag, bool refused, size_t from, size_t to)
{
    oos_serve_refusal *r = &in->serve->refusal;
    uint32_t const count = (uint32_t)(to - from);
    for (size_t i = first_flag; i < in->flag_count; i++)
        in->flags[i].first_word = (uint32_t)from, in->flags[i].word_count = count;
    if (!refused && r->sentence) r->first_word = (uint32_t)from, r->word_count = count;
}

static oomsight_status words_read(oos_serve_reader *in, const char *const *words, size_t from, size_t count)
{
    oos_serve_cursor c = {words, count, from};
    while (c.at < c.count) {
        const char *word = c.words[c.at];
        size_t const start = c.at, flags = in->flag_count;
        bool const refused = in->serve->refusal.sentence != NULL;
        if (flag_like(word) || is_first(in, word)) {
            if (word[1] == '-' && word[2] == '\0')
                c.at++;
            else
                OOS_TRY(flag_take(in, &c));
        } else {
            bool const here = !in->dialect->model_first || (c.at == from && !in->serve->words.flags_only);
            bool const path = strchr(word, '/') && in->misplaced && !strchr(in->misplaced, '/');
            if (!here && (!in->misplaced || path)) /* of several words the model is one with a slash */
                in->misplaced = word;
            else if (!in->positional && here)
                in->positional = word;
            else
                oos_serve_note(in, (oos_given_flag){.name = word, .effect = OOS_FLAG_UNKNOWN});
            c.at++;
        }
        place_keep(in, flags, refused, start, c.at);
    }
    return OOMSIGHT_OK;
}

/* ---- --config FILE --------------------------------------------------------------------------------------------- */

/* The words a config file stands for, as vLLM's load_config_file() makes them. Options that the engine drops are
 * noted here. */
static oomsight_status config_words(oos_serve_reader *in, const oos_yaml_option *options, size_t count,
                                    const char ***ret_words, size_t *ret_count)
{
    size_t most = 0, at = 0;
    for (size_t i = 0; i < count; i++) most += 1 + options[i].value_count;
    const char **words = OOS_NEW_ARRAY(in->arena, const char *, most);
    /* every word may be noted, now and by the caller */
    oos_given_flag *flags = OOS_NEW_ARRAY(in->arena, oos_given_flag, in->flag_capacity + most + count);
    if (!words || !flags) return nomem(in);
    if (in->flag_count) memcpy(flags, in->flags, in->flag_count * sizeof *flags);
    in->flags = flags;
    in->flag_capacity += most + count;

    for (size_t i = 0; i < count; i++) {
        const oos_yaml_option *option = &options[i];
        size_t later = i + 1; /* a key given twice: the last one counts */
        while (later < count && strcmp(options[later].key, option->key) != 0) later++;
        if (later < count) continue;
        char *flag = oos_arena_format(in->arena, "--%s", option->key);
        if (!flag) return nomem(in);
        if (option->kind == OOS_YAML_FALSE || (option->kind == OOS_YAML_LIST && option->value_count == 0)) {
            /* the parser has no --no-x under the name it asks for: checked with 0.11.0, 0.19.1 and 0.32.0 */
            const char *note = option->kind == OOS_YAML_FALSE
                                   ? oos_arena_format(in->arena,
                                                      "the engine ignores `false` in a config file: write "
                                                      "`no-%s: true`",
                                                      option->key)
                                   : "an empty list is ignored";
            oos_serve_note(
                in,
                (oos_given_flag){.name = flag, .value = "false", .effect = OOS_FLAG_NO_MEMORY, .note = note});
            continue;
        }
        words[at++] = flag;
        if (option->kind == OOS_YAML_NULL)
            words[at++] = "None";
        else if (option->kind != OOS_YAML_TRUE)
            for (size_t k = 0; k < option->value_count; k++) words[at++] = option->values[k];
    }
    *ret_words = words;
    *ret_count = at;
    return OOMSIGHT_OK;
}

static oomsight_status config_read(oos_serve_reader *in, const char *path, const char ***ret_words,
                                   size_t *ret_count)
{
    const char *dot = strrchr(path, '.');
    if (!dot || (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0))
        return oos_fail(in->reterr, OOMSIGHT_USAGE, "%s takes a .yaml or .yml file, not `%.200s`",
                        in->dialect->config_flag, path);
    oos_view bytes;
    OOS_TRY(oos_file_read(in->arena, path, CONFIG_FILE_MAX, &bytes, in->reterr));
    const oos_yaml_option *options;
    size_t option_count;
    oomsight_status const status = oos_yaml_read(in->arena, bytes, &options, &option_count, in->reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(in->reterr, status, path);
    return config_words(in, options, option_count, ret_words, ret_count);
}

/* The engine puts the file's options before those of the command line, wherever --config stands, so the command line
 * wins. It looks for the word alone: `--config=FILE` is taken and does nothing. */
static oomsight_status config_find(oos_serve_reader *in, const char *const *words, size_t count,
                                   const char ***ret_words, size_t *ret_count)
{
    const char *path = NULL, *flag = in->dialect->config_flag;
    for (size_t i = 0; flag && i < count; i++) {
        if (words[i][0] != '-' || strcmp(words[i], flag) != 0) continue;
        if (path) return oos_fail(in->reterr, OOMSIGHT_USAGE, "more than one %s", flag);
        if (i + 1 == count) return oos_fail(in->reterr, OOMSIGHT_USAGE, "%s needs a file", flag);
        path = words[i + 1];
    }
    return path ? config_read(in, path, ret_words, ret_count) : OOMSIGHT_OK;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

/* A copy of all words in one piece: nothing of the caller's is kept. */
static const char **words_copy(oos_arena *arena, const char *const *words, size_t count, size_t *ret_bytes)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += strlen(words[i]) + 1;
    const char **copy = OOS_NEW_ARRAY(arena, const char *, count);
    char *text = oos_arena_take(arena, bytes);
    if (!copy || !text) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t const len = strlen(words[i]) + 1;
        memcpy(text, words[i], len);
        copy[i] = text;
        text += len;
    }
    *ret_bytes = bytes;
    return copy;
}

static bool plain_word(const char *word)
{
    for (const char *at = word; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
              strchr("-_./=:,@%+", *at)))
            return false;
    return *word != '\0';
}

/* A word as a shell would take it back. */
static char *word_put(char *out, const char *word)
{
    bool const plain = plain_word(word);
    if (!plain) *out++ = '\'';
    for (; *word; word++) {
        if (*word == '\'') { /* '\'' */
            *out++ = '\'';
            *out++ = '\\';
            *out++ = '\'';
        }
        *out++ = *word;
    }
    if (!plain) *out++ = '\'';
    return out;
}

/* The words up to the entry and the model: what a fix is appended to. */
static const char *program_of(oos_serve_reader *in, const char *const *words, size_t first, size_t bytes)
{
    const char *model = in->serve->model;
    /* at worst every letter is a quote that takes four, and each word has two quotes and a space */
    char *text = oos_arena_take(in->arena, 4 * (bytes + (model ? strlen(model) : 0)) + 3 * first + 32),
         *out = text;
    if (!text) return NULL;
    for (size_t i = 0; i < first; i++) {
        out = word_put(out, words[i]);
        *out++ = ' ';
    }
    if (model) {
        if (!in->positional) {
            out = word_put(out, in->dialect->model_flag);
            *out++ = ' ';
        }
        out = word_put(out, model);
    } else if (out > text) {
        out--;
    }
    *out = '\0';
    return text;
}

static oomsight_status keywords_read(oos_serve_reader *in, const char *const *words, size_t count)
{
    size_t bytes = 0, most = 1;
    for (size_t i = 0; i < count; i++) bytes += strlen(words[i]) + 1;
    char *text = oos_arena_take(in->arena, bytes + 1), *out = text;
    if (!text) return nomem(in);
    for (size_t i = 0; i < count; i++) {
        size_t const len = strlen(words[i]);
        memcpy(out, words[i], len);
        out[len] = ' ';
        out += len + 1;
    }
    /* each keyword notes one flag at most, and so does each stray word */
    for (const char *at = text; *at; at++) most += *at == '=' || *at == ',' || *at == ' ';
    in->flags = OOS_NEW_ARRAY(in->arena, oos_given_flag, most);
    if (!in->flags) return nomem(in);
    in->flag_capacity = most;
    in->python = true;
    return oos_serve_take_keywords(in, text);
}

/* `vllm serve --unknown Qwen/Qwen3-8B`: without another word, that was the model. */
static void model_settle(oos_serve_reader *in)
{
    for (size_t i = in->flag_count; !in->positional && !in->model_option && i > 0; i--) {
        oos_given_flag *flag = &in->flags[i - 1];
        if (flag->effect != OOS_FLAG_UNKNOWN || !flag->value) continue;
        in->positional = flag->value;
        flag->value = NULL;
        if (flag->word_count > 1) flag->word_count--;
    }
    in->serve->model = in->positional ? in->positional : in->model_option;
}

/* `sglang serve --tp 2 MODEL`: argparse misses the flag of the model before it minds the word. */
static oomsight_status misplaced_end(oos_serve_reader *in)
{
    oos_flag_hit const hit = oos_flags_find(in->table, oos_view_of(in->dialect->model_flag), in->version);
    if (in->positional || in->model_option || !hit.record) {
        oos_serve_note(in, (oos_given_flag){.name = in->misplaced, .effect = OOS_FLAG_UNKNOWN});
        return OOMSIGHT_OK;
    }
    in->positional = in->misplaced;
    return oos_serve_refuse(in, in->misplaced, NULL, "the following arguments are required: %s",
                            oos_serve_argument(in, hit.record, hit.form));
}

/* What is left to do when all words are read. */
static oomsight_status command_finish(oos_serve_reader *in, bool latency)
{
    OOS_TRY(oos_serve_finish_json(in));
    if (in->dialect->finish) OOS_TRY(in->dialect->finish(in, latency));
    if (in->misplaced) OOS_TRY(misplaced_end(in));
    model_settle(in);
    OOS_TRY(unrecognized_end(in));
    in->serve->flags = in->flags;
    in->serve->flag_count = in->flag_count;
    return OOMSIGHT_OK;
}

/* The words of the config file and of the command line, one list behind the other. */
static oomsight_status words_join(oos_serve_reader *in, const char *const *words, size_t count)
{
    oos_serve_words *all = &in->serve->words;
    const char **from_config = NULL;
    OOS_TRY(config_find(in, words, count, &from_config, &all->from_config));
    all->list = words;
    all->count = count;
    if (all->from_config == 0) return OOMSIGHT_OK;
    const char **list = OOS_NEW_ARRAY(in->arena, const char *, all->from_config + count);
    if (!list) return nomem(in);
    memcpy(list, from_config, all->from_config * sizeof *list);
    if (count) memcpy(list + all->from_config, words, count * sizeof *list);
    all->list = list;
    all->count += all->from_config;
    return OOMSIGHT_OK;
}

static oomsight_status words_read_all(oos_serve_reader *in)
{
    const oos_serve_words *all = &in->serve->words;
    in->positional = ""; /* the model of the command line comes before anything of the file */
    OOS_TRY(words_read(in, all->list, 0, all->from_config));
    in->positional = NULL;
    return words_read(in, all->list, all->from_config, all->count);
}

oomsight_status oos_serve_read_words(oos_arena *arena, const oos_serve *old, const oos_serve_words *words,
                                     oos_serve *ret_serve, oomsight_error *reterr)
{
    oos_serve serve = {.usage = old->usage, .program = old->program, .words = *words};
    oos_serve_reader in = {.dialect = words->dialect,
                           .arena = arena,
                           .table = words->table,
                           .version = words->version,
                           .serve = &serve,
                           .reterr = reterr,
                           .bench = words->bench,
                           .flag_capacity = old->flag_count + words->count};
    in.flags = OOS_NEW_ARRAY(arena, oos_given_flag, in.flag_capacity);
    if (!in.flags) return nomem(&in);
    for (size_t i = 0; i < old->flag_count; i++)
        if (old->flags[i].word_count == 0) oos_serve_note(&in, old->flags[i]);
    OOS_TRY(words_read_all(&in));
    OOS_TRY(command_finish(&in, words->latency));
    *ret_serve = serve;
    return OOMSIGHT_OK;
}

const oos_given_flag *oos_serve_given(const oos_serve *serve, const char *flag)
{
    for (size_t i = serve->flag_count; i > 0; i--)
        if (strcmp(serve->flags[i - 1].name, flag) == 0) return &serve->flags[i - 1];
    return NULL;
}

oomsight_status oos_serve_read_as(const oos_dialect *dialect, oos_arena *arena, const char *const *words,
                                  size_t word_count, const oos_flag_table *table, oos_version version,
                                  oos_serve *ret_serve, oos_engine_env *ret_env, oomsight_error *reterr)
{
    oos_serve serve = {.words.dialect = dialect};
    oos_engine_env env = {0};
    oos_serve_entry entry;
    size_t bytes = 0;
    const char **copy = words_copy(arena, words, word_count, &bytes);
    oos_serve_reader in = {
        .dialect = dialect,
        .arena = arena,
        .table = table,
        .version = version,
        .serve = &serve,
        .reterr = reterr,
    };
    if (!copy) return nomem(&in);
    OOS_TRY(oos_serve_enter(&in, copy, word_count, &entry, &env));
    serve.usage = entry.usage;
    in.bench = entry.bench;

    if (entry.keywords) {
        OOS_TRY(keywords_read(&in, copy + entry.first, word_count - entry.first));
    } else {
        in.flag_capacity = word_count - entry.first;
        in.flags = OOS_NEW_ARRAY(arena, oos_given_flag, in.flag_capacity);
        if (!in.flags) return nomem(&in);
        serve.words = (oos_serve_words){.dialect = dialect,
                                        .table = table,
                                        .version = version,
                                        .bench = entry.bench,
                                        .latency = entry.latency,
                                        .flags_only = entry.flags_only,
                                        .own = entry.own};
        OOS_TRY(words_join(&in, copy + entry.first, word_count - entry.first));
        OOS_TRY(words_read_all(&in));
    }
    OOS_TRY(command_finish(&in, entry.latency));
    serve.program = entry.keywords ? "LLM" : program_of(&in, copy, entry.first, bytes);
    if (!serve.program) return nomem(&in);
    *ret_serve = serve;
    *ret_env = env;
    return OOMSIGHT_OK;
}
