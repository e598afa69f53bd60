/* The engines there are. */
#include "engines/engines.h"

static const oos_engine *const engines[OOS_ENGINE_COUNT] = {
#define ENGINE(name) &oos_engine_##name,
#include "facts/engine.def"
#undef ENGINE
};

const oos_engine *oos_engine_find(const oos_engine_words *words)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (engines[i]->words == words) return engines[i];
    return NULL;
}

const oos_engine *oos_engine_asked(const char *name, const char *const *words, size_t count)
{
    const oos_engine_words *named = name ? oos_engine_words_find(name) : oos_engine_words_of(words, count);
    return oos_engine_find(named ? named : oos_engine_default);
}

oomsight_status oos_engine_facts_load(oos_arena *arena, const oos_engine *engine, const char *data_dir,
                                      oos_engine_facts *ret_facts, oomsight_error *reterr)
{
    oos_engine_facts facts = {.architectures = {"", 0}};
    OOS_TRY(engine->book_load(arena, data_dir, &facts.rules, reterr));
    OOS_TRY(oos_flags_load(arena, data_dir, engine->words->name, &facts.flags, reterr));
    OOS_TRY(oos_torch_load(arena, data_dir, &facts.torch, reterr));
    OOS_TRY(oos_ladder_load(arena, data_dir, engine->words->name, &facts.ladder, reterr));
    *ret_facts = facts;
    return OOMSIGHT_OK;
}
