/* The engines by their words: what a command, an image, a folder of data and a report call each. What an engine does is in
 * engines/. */
#ifndef OOS_FACTS_ENGINE_H
#define OOS_FACTS_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct oos_engine_words {
    const char *name, *title, *config_title, *module, *server, *image;
    bool image_serves;
    const char *ready;
    const char *running, *waiting, *kv_used;  /* metrics */
    const char *cache_variable, *cache_below; /* NULL: it keeps nothing that it compiles */
    const char *wrapper, *computes[2];        /* parts of paths of its files; NULL: none */
} oos_engine_words;

enum {
#define ENGINE(name, ...) OOS_ENGINE_##name,
#include "facts/engine.def"
#undef ENGINE
    OOS_ENGINE_COUNT
};
extern const oos_engine_words oos_engine_list[OOS_ENGINE_COUNT];
extern const oos_engine_words *const oos_engine_default; /* meant where nothing is said */

const oos_engine_words *oos_engine_words_find(const char *name); /* NULL: no such engine */

/* The engine that two words start: `NAME serve`, `NAME bench` or `-m MODULE`; NULL: none. */
const oos_engine_words *oos_engine_words_at(const char *word, const char *next);

/* The engine that a command starts, `NAME serve` or `-m MODULE`, or whose image it runs; NULL: none is named. */
const oos_engine_words *oos_engine_words_of(const char *const *words, size_t count);

/* The engine whose published image this is; NULL: none of them. */
const oos_engine_words *oos_engine_words_of_image(const char *image);

/* A release as a fleet names it, "0.32.0" or "sglang=0.5.23", as people call it: "vLLM 0.32.0". Cut to fit. */
const char *oos_engine_release(const char *label, char *buffer, size_t size);

/* A server of models that is not planned, by the name of a program or an image: "llama.cpp"; NULL: none is known. */
const char *oos_engine_other(const char *word);

/* The server that a command starts and that is not planned: by its program, a Python module, an image, or the flag with which it takes
 * over another engine's command; NULL: none is known. */
const char *oos_engine_other_of(const char *const *words, size_t count);

/* Whether a name is the engine's, or that of something built on it: "vllm-ascend". */
bool oos_engine_is(const oos_engine_words *engine, const char *name);

/* Whether a server of models has this name in logs, planned or not. */
bool oos_engine_is_server(const char *name);

/* Every engine that is planned: "vLLM, SGLang". */
const char *oos_engine_titles(void);

/* Whether any engine's name stands in the text. */
bool oos_engine_named(const char *text);

#endif
