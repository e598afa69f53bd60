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
    oos_view engine, version, text; /* strings: as they stand between the quotes */
    oos_view package, torch, flags, architectures, quantization; /* whole values */
    oos_view terms, probes, configs;                             /* ... of the answer to --probe */
    oos_view rules, census;                                      /* ... of the comparison with its source */
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
                          : oos_view_is(key, "quantization")  ? &ret_answer->quantization
                          : oos_view_is(key, "terms")         ? &ret_answer->terms
                          : oos_view_is(key, "probes")        ? &ret_answer->probes
                          : oos_view_is(key, "configs")       ? &ret_answer->configs
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

/* An answer on its way into a file. */
typedef struct keeping {
    oos_arena *arena;
    const oomsight_data *data;
    const oos_engine_words *words;
    const oomsight_exact *probe; /* the answer of small starts; NULL: none were made */
    learned_answer answer, told;
    oos_learned learned;
    oos_version newest;
    char base[32];
    oos_text file, rests, said, more;
    int kept;
} keeping;

static bool is_list(oos_view value)
{
    oos_scan scan = oos_scan_begin(value);
    return value.len && oos_scan_open(&scan, '[') && oos_scan_item(&scan);
}

static void file_put(keeping *k)
{
    oos_text *text = &k->file;
    const learned_answer *answer = &k->answer, *told = &k->told;
    text->len = 0;
    oos_text_printf(text, "{\"schema\":\"" OOS_LEARNED_SCHEMA "\",\n\"engine\":\"%s\",\n\"version\":\"%.*s\"",
                    k->words->name, (int)answer->version.len, answer->version.ptr);
    part_put(text, "package", answer->package);
    part_put(text, "torch", answer->torch);
    oos_text_printf(text, ",\n\"base\":\"%s\"", k->base);
    part_put(text, "flags", answer->flags);
    part_put(text, "architectures", answer->architectures);
    part_put(text, "quantization", answer->quantization);
    part_put(text, "rules", answer->rules);
    part_put(text, "census", answer->census);
    if (told->terms.len) {
        part_put(text, "terms", (oos_view){told->terms.ptr, told->terms.len - 1});
        oos_text_add(text, (oos_view){k->rests.ptr ? k->rests.ptr : "", k->rests.len});
        oos_text_put(text, "]");
        part_put(text, "probes", told->probes);
    }
    oos_text_put(text, "}\n");
}

/* A line for each part that could not be read. */
static void left_out_put(keeping *k, const learned_answer *of)
{
    oos_view key;
    oos_scan scan = oos_scan_begin(of->left_out);
    if (!of->left_out.len || !oos_scan_open(&scan, '{')) return;
    while (oos_scan_key(&scan, &key)) {
        oos_view const why = oos_scan_string_or_none(&scan);
        oos_text_printf(&k->more, "%s is left out: %s\n", shown(k->arena, key), shown(k->arena, why));
    }
}

/* What small starts have told, where it is something that a plan can read. */
static void told_read(keeping *k)
{
    const char *why = k->probe ? k->probe->problem : "";
    if (k->probe && !why &&
        (!answer_read((oos_view){k->probe->answer, k->probe->answer_bytes}, &k->told) ||
         !oos_view_equal(k->told.version, k->answer.version)))
        why = "the answer cannot be read";
    if (k->probe && why && !k->told.version.len && k->told.text.len) why = shown(k->arena, k->told.text);
    if (k->probe && !why && !is_list(k->told.terms)) {
        left_out_put(k, &k->told);
        why = "no start shows any";
    }
    if (!why) return;
    k->told = (learned_answer){0};
    if (*why) oos_text_printf(&k->more, "terms is left out: %s\n", shown(k->arena, oos_view_of(why)));
}

static oomsight_status answer_take(keeping *k, oos_view bytes, oomsight_error *reterr)
{
    const char *title = k->words->title, *release;
    if (!answer_read(bytes, &k->answer) || !oos_view_is(k->answer.engine, k->words->name))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the answer of the installed %s cannot be read", title);
    if (!k->answer.version.len)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "the installed %s could not be imported: %s", title,
                        shown(k->arena, k->answer.text));
    const char *missing = !k->answer.flags.len ? "flags" : !k->answer.package.len ? "package" : NULL;
    release = shown(k->arena, k->answer.version);
    if (missing)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "of the installed %s %s the %s could not be read: %s",
                        title, release, missing, why_not(k->arena, &k->answer, missing));
    told_read(k);
    file_put(k);
    if (k->file.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    if (k->file.len <= OOS_LEARNED_BYTES_MAX &&
        oos_learned_parse((oos_view){k->file.ptr, k->file.len}, k->words->name, &k->learned))
        return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_MALFORMED, "the answer of the installed %s cannot be read", title);
}

/* What the terms of small starts leave open stands behind them. */
static oomsight_status rests_add(keeping *k, oomsight_error *reterr)
{
    oomsight_error error = {0};
    if (!k->told.terms.len) return OOMSIGHT_OK;
    if (oos_learned_rests(k->arena, k->data, &k->learned, k->told.probes, k->told.configs, &k->rests,
                          &k->more, &error) != OOMSIGHT_OK)
        oos_text_printf(&k->more, "rest is left out: %s\n", shown(k->arena, oos_view_of(error.text)));
    left_out_put(k, &k->told);
    file_put(k);
    return k->file.failed || k->rests.failed || k->file.len > OOS_LEARNED_BYTES_MAX
               ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the terms")
               : OOMSIGHT_OK;
}

static oomsight_status file_keep(keeping *k, oomsight_error *reterr)
{
    oos_flag_table flags;
    oos_learned *learned = &k->learned;
    const char *title = k->words->title, *engine = k->words->name,
               *release = shown(k->arena, k->answer.version);
    if (learned->version <= k->newest && !strpbrk(release, "+") && !strstr(release, ".dev")) {
        oos_text_printf(&k->said, "%s %s is known here: nothing is to be learned\n", title, release);
        return OOMSIGHT_OK;
    }
    if (learned->version < k->newest)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "%s %s is older than %s, the newest that is known here",
                        title, release, k->base);
    if (oos_flags_load_learned(k->arena, k->data->dir, engine, learned, &flags, NULL) != OOMSIGHT_OK)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the flags of the installed %s cannot be read", title);
    const char *folder = oos_learned_folder(k->arena), *name = oos_learned_name(k->arena, engine, learned);
    const char *place = folder && name ? oos_arena_format(k->arena, "%s/%s", folder, name) : NULL;
    if (!place) return oos_fail(reterr, OOMSIGHT_NOT_FOUND, "no HOME to keep the flags in");
    OOS_TRY(rests_add(k, reterr));
    OOS_TRY(oos_place_keep(place, k->file.ptr, k->file.len, reterr));
    if (!oos_learned_find(k->arena, engine, learned->version, name, learned))
        return oos_fail(reterr, OOMSIGHT_IO, "%.200s is not used: others can write it", place);
    k->kept = 1;
    summary_put(&k->said, &flags, k->newest, title, release, k->base, place);
    rules_put(&k->said, &k->learned, k->base);
    left_out_put(k, &k->answer);
    return OOMSIGHT_OK;
}

oomsight_status oomsight_learned_keep(const oomsight_data *data, const char *engine,
                                      const oomsight_exact *answer, const oomsight_exact *probe,
                                      int *ret_kept, char **ret_text, oomsight_error *reterr)
{
    const oos_engine_facts *facts;
    keeping k = {.arena = oos_arena_create(64 << 10),
                 .data = data,
                 .words = oos_engine_words_find(engine),
                 .probe = probe};
    oomsight_status status = OOMSIGHT_OK;
    if (!k.arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    if (!k.words) status = oos_fail(reterr, OOMSIGHT_USAGE, "no engine is called '%s'", engine);
    if (status == OOMSIGHT_OK) status = oos_api_facts(data, oos_engine_find(k.words), &facts, reterr);
    if (status == OOMSIGHT_OK) {
        k.newest = facts->flags.versions[facts->flags.version_count - 1];
        oos_version_print(k.newest, k.base, sizeof k.base);
        status = answer_take(&k, (oos_view){answer->answer, answer->answer_bytes}, reterr);
    }
    if (status == OOMSIGHT_OK) status = file_keep(&k, reterr);
    oos_text_add(&k.said, (oos_view){k.more.ptr ? k.more.ptr : "", k.more.len});
    *ret_kept = k.kept;
    if (status == OOMSIGHT_OK) status = oos_text_take(&k.said, ret_text, reterr);
    oos_text *const texts[] = {&k.file, &k.rests, &k.said, &k.more};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) oos_text_free(texts[i]);
    oos_arena_free(k.arena);
    return status;
}
