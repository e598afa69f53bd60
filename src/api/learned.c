/* oomsight learn: what an installed engine said of itself, kept as a file that a plan reads (facts/learned.c). Its answer is another
 * program's: it is kept once it was read as a plan reads it, and is then the text that was read. */
#include "api/api.h"
#include "base/check.h"
#include "base/place.h"
#include "base/shown.h"

#include <stdlib.h>

enum { PROBLEM_MAX = 400 };

/* What an answer is made of. */
typedef struct learned_answer {
    oos_view engine, version, text;                /* strings: as they stand between the quotes */
    oos_view package, torch, flags, architectures; /* whole values */
    oos_view rules, census;
    oos_view left_out;
} learned_answer;

static bool answer_read(oos_view bytes, learned_answer *ret_answer)
{
    oos_view key;
    oos_scan scan = oos_scan_begin(bytes);
    *ret_answer = (learned_answer){0};
    if (!oos_scan_open(&scan, '{')) return false;
    while (oos_scan_key(&scan, &key)) {
        oos_view *value = oos_view_is(key, "package")         ? &ret_answer->package
                          : oos_view_is(key, "torch")         ? &ret_answer->torch
                          : oos_view_is(key, "flags")         ? &ret_answer->flags
                          : oos_view_is(key, "architectures") ? &ret_answer->architectures
                          : oos_view_is(key, "rules")         ? &ret_answer->rules
                          : oos_view_is(key, "census")        ? &ret_answer->census
                          : oos_view_is(key, "left_out")      ? &ret_answer->left_out
                                                              : NULL;
        if (oos_view_is(key, "engine"))
            ret_answer->engine = oos_scan_string_or_none(&scan);
        else if (oos_view_is(key, "version"))
            ret_answer->version = oos_scan_string_or_none(&scan);
        else if (oos_view_is(key, "text"))
            ret_answer->text = oos_scan_string_or_none(&scan);
        else
            oos_scan_skip(&scan, value);
    }
    return oos_scan_done(&scan);
}

static const char *shown(oos_arena *arena, oos_view raw)
{
    const char *text = oos_scan_text(arena, raw);
    const char *copy =
        text ? oos_arena_copy(arena, oos_shown_beginning(oos_view_of(text), PROBLEM_MAX)) : NULL;
    return copy ? oos_shown(arena, copy) : "";
}

/* Why a part is not there; "" : nobody says. */
static const char *why_not(oos_arena *arena, const learned_answer *answer, const char *part)
{
    oos_view key, found = {"", 0};
    oos_scan scan = oos_scan_begin(answer->left_out);
    if (answer->left_out.len && oos_scan_open(&scan, '{'))
        while (oos_scan_key(&scan, &key)) {
            oos_view const value = oos_scan_string_or_none(&scan);
            if (oos_view_is(key, part)) found = value;
        }
    if (!found.len && answer->text.len) found = answer->text;
    return shown(arena, found);
}

static void part_put(oos_text *text, const char *name, oos_view value)
{
    if (value.len) oos_text_printf(text, ",\n\"%s\":%.*s", name, (int)value.len, value.ptr);
}

static void file_put(oos_text *text, const char *engine, const learned_answer *answer, const char *base)
{
    oos_text_printf(text, "{\"schema\":\"" OOS_LEARNED_SCHEMA "\",\n\"engine\":\"%s\",\n\"version\":\"%.*s\"",
                    engine, (int)answer->version.len, answer->version.ptr);
    part_put(text, "package", answer->package);
    part_put(text, "torch", answer->torch);
    oos_text_printf(text, ",\n\"base\":\"%s\"", base);
    part_put(text, "flags", answer->flags);
    part_put(text, "architectures", answer->architectures);
    part_put(text, "rules", answer->rules);
    part_put(text, "census", answer->census);
    oos_text_put(text, "}\n");
}

static void summary_put(oos_text *said, const oos_flag_table *flags, oos_version newest, const char *title,
                        const char *release, const char *base, const char *place)
{
    size_t all = 0, fresh = 0, gone = 0;
    oos_assert(flags->learned >= newest);
    for (size_t i = 0; i < flags->count; i++) {
        all += flags->list[i].until == UINT64_MAX;
        fresh += flags->list[i].since == flags->learned;
        gone += flags->list[i].until == newest;
    }
    oos_text_printf(said, "%s %s: %zu flags, of which %zu are new since %s; %zu are gone. Kept in %s\n",
                    title, release, all, fresh, base, gone, place);
}

static void rules_put(oos_text *said, const oos_learned *learned, const char *base)
{
    oos_learned_doubt list[OOS_LEARNED_DOUBTS_MAX];
    size_t changed;
    if (oos_learned_doubts(learned, list, OOS_LEARNED_DOUBTS_MAX, &changed))
        oos_text_printf(said, "%zu rules rest on source that has changed since %s\n", changed, base);
}

static oomsight_status learned_keep(oos_arena *arena, const oomsight_data *data, const char *engine_name,
                                    oos_view bytes, oos_text *file, oos_text *said, oomsight_error *reterr)
{
    learned_answer answer;
    oos_learned learned;
    oos_flag_table flags;
    const oos_engine_facts *facts;
    const oos_engine_words *words = oos_engine_words_find(engine_name);
    if (!words) return oos_fail(reterr, OOMSIGHT_USAGE, "no engine is called '%s'", engine_name);
    OOS_TRY(oos_api_facts(data, oos_engine_find(words), &facts, reterr));
    char base[32];
    oos_version const newest = facts->flags.versions[facts->flags.version_count - 1];
    oos_version_print(newest, base, sizeof base);
    if (!answer_read(bytes, &answer) || !oos_view_is(answer.engine, engine_name))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the answer of the installed %s cannot be read",
                        words->title);
    if (!answer.version.len)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "the installed %s could not be imported: %s",
                        words->title, shown(arena, answer.text));
    const char *release = shown(arena, answer.version), *missing = !answer.flags.len     ? "flags"
                                                                   : !answer.package.len ? "package"
                                                                                         : NULL;
    if (missing)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "of the installed %s %s the %s could not be read: %s",
                        words->title, release, missing, why_not(arena, &answer, missing));
    file_put(file, engine_name, &answer, base);
    if (file->failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    if (file->len > OOS_LEARNED_BYTES_MAX ||
        !oos_learned_parse((oos_view){file->ptr, file->len}, engine_name, &learned))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the answer of the installed %s cannot be read",
                        words->title);
    if (learned.version <= newest && !strpbrk(release, "+") && !strstr(release, ".dev")) {
        oos_text_printf(said, "%s %s is known here: nothing is to be learned\n", words->title, release);
        return OOMSIGHT_OK;
    }
    if (learned.version < newest)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "%s %s is older than %s, the newest that is known here",
                        words->title, release, base);
    if (oos_flags_load_learned(arena, data->dir, engine_name, &learned, &flags, NULL) != OOMSIGHT_OK)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the flags of the installed %s cannot be read",
                        words->title);
    const char *folder = oos_learned_folder(arena), *name = oos_learned_name(arena, engine_name, &learned);
    const char *place = folder && name ? oos_arena_format(arena, "%s/%s", folder, name) : NULL;
    if (!place) return oos_fail(reterr, OOMSIGHT_NOT_FOUND, "no HOME to keep the flags in");
    OOS_TRY(oos_place_keep(place, file->ptr, file->len, reterr));
    if (!oos_learned_find(arena, engine_name, learned.version, name, &learned))
        return oos_fail(reterr, OOMSIGHT_IO, "%.200s is not used: others can write it", place);
    summary_put(said, &flags, newest, words->title, release, base, place);
    rules_put(said, &learned, base);
    if (!answer.torch.len) oos_text_printf(said, "torch is left out: %s\n", why_not(arena, &answer, "torch"));
    if (!answer.architectures.len)
        oos_text_printf(said, "architectures is left out: %s\n", why_not(arena, &answer, "architectures"));
    return OOMSIGHT_OK;
}

oomsight_status oomsight_learned_keep(const oomsight_data *data, const char *engine, const char *answer,
                                      size_t answer_bytes, char **ret_text, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oos_text file = {0}, said = {0};
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    oomsight_status const status =
        learned_keep(arena, data, engine, (oos_view){answer, answer_bytes}, &file, &said, reterr);
    oos_text_free(&file);
    oos_arena_free(arena);
    if (status == OOMSIGHT_OK) return oos_text_take(&said, ret_text, reterr);
    oos_text_free(&said);
    return status;
}
