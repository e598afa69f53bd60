/* Any bytes as the file of what was learned of an installed engine: what is taken of them stays within its bounds, a term between its ends, and
 * every flag of it is found again. */
#include "fuzz.h"

#include "facts/facts.h"
#include "oomsight_private.h"

static void flag_check(const oos_flag_table *table, const oos_flag_record *record, oos_version newest)
{
    FUZZ_REQUIRE(record->name && record->dest && record->form_count > 0);
    for (size_t i = 1; i < record->form_count; i++)
        FUZZ_REQUIRE(record->forms[i - 1].since <= record->forms[i].since);
    if (record->since != table->learned || table->learned <= newest) return;
    oos_flag_hit const hit = oos_flags_find(table, oos_view_of(record->name), table->learned);
    FUZZ_REQUIRE(hit.record && hit.here && hit.form->since == table->learned);
    FUZZ_REQUIRE(hit.form->least_values <= hit.form->most_values);
}

static void term_check(const oos_learned_term *term, double least, double most)
{
    FUZZ_REQUIRE(!term->known || (term->low >= least && term->low <= term->value &&
                                  term->value <= term->high && term->high <= most));
}

static void terms_check(const oos_learned_terms *terms)
{
    const oos_learned_term *const bytes[] = {&terms->early_cublas, &terms->early, &terms->retained};
    term_check(&terms->sampler, 0, 256);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) term_check(bytes[i], 0, 0x1p40);
    for (size_t i = 0; i < OOS_REST_COUNT; i++) term_check(&terms->rests[i], -0x1p40, 0x1p40);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_view const text = {(const char *)bytes, len};
    oos_learned learned;
    oos_flag_table table;
    oos_arena *arena = oos_arena_create(64 << 10);
    if (arena && oos_learned_parse(text, "vllm", &learned)) {
        FUZZ_REQUIRE(learned.flags.len && learned.flags.ptr >= text.ptr &&
                     learned.flags.ptr + learned.flags.len <= text.ptr + len);
        terms_check(&learned.terms);
        static oos_learned_doubt doubts[OOS_LEARNED_DOUBTS_MAX];
        size_t doubted = 0;
        if (oos_learned_doubts(&learned, doubts, OOS_LEARNED_DOUBTS_MAX, &doubted))
            FUZZ_REQUIRE(doubted <= OOS_LEARNED_DOUBTS_MAX);
        for (size_t i = 0; i < doubted; i++)
            FUZZ_REQUIRE(doubts[i].added_count <= 2 && doubts[i].rule.ptr > text.ptr);
        const char *name = oos_learned_name(arena, "vllm", &learned);
        FUZZ_REQUIRE(name && !strchr(name, '/') && strlen(name) < 100);
        if (oos_flags_load_learned(arena, NULL, "vllm", &learned, &table, NULL) == OOMSIGHT_OK) {
            FUZZ_REQUIRE(!table.learned || table.versions[table.version_count - 1] >= table.learned);
            oos_flag_table known;
            FUZZ_REQUIRE(oos_flags_load(arena, NULL, "vllm", &known, NULL) == OOMSIGHT_OK);
            oos_version const newest = known.versions[known.version_count - 1];
            for (size_t i = 0; i < table.count; i++) flag_check(&table, &table.list[i], newest);
        }
    }
    oos_arena_free(arena);
    return 0;
}
