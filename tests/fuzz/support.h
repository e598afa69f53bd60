/* What targets over whole commands share: the data, a folder of their own, and reports looked at. */
#pragma once
#include "fuzz.h"

#include "oomsight_private.h"

/* Opened once. Nothing of the environment (caches, tokens, offline switches) is seen from then on. */
const oomsight_data *fuzz_data(void);

/* A folder with the models `small` and `moe`; removed when the target ends. */
const char *fuzz_folder(void);
/* `bytes` as FOLDER/name; lives until the next call. */
const char *fuzz_file(const char *name, const void *bytes, size_t len);

/* Words between line ends, cut out of `text`; no word opens another file. */
size_t fuzz_split(char *text, const char **words, size_t most);

/* A report as the library gave it: there, and JSON where it should be (`lines`: an object a line). Frees it. */
void fuzz_look(oomsight_status status, char *text, oomsight_format format, int lines);
