/* Where a model is. What comes first wins, as in the engine: a directory, then the cache, then the hub. Where the hub gives no
 * answer, models in common use are known here. */
#include "model/model.h"
#include "base/ascii.h"
#include "base/file.h"

static bool ends_with(const char *word, const char *tail)
{
    size_t const len = strlen(word), tail_len = strlen(tail);
    return len >= tail_len && oos_same(word + len - tail_len, tail);
}

static oomsight_status open_dir(oos_arena *arena, const char *data_dir, const char *dir,
                                const char *overrides, oos_model *ret_model, oomsight_error *reterr)
{
    char *config = oos_arena_format(arena, "%s/config.json", dir);
    if (!config) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    if (!oos_file_exists(config)) {
        oos_fail(reterr, OOMSIGHT_NOT_FOUND, "a directory without config.json is not a model");
        return oos_fail_in(reterr, OOMSIGHT_NOT_FOUND, dir);
    }
    return oos_model_open_dir(arena, data_dir, dir, overrides, ret_model, reterr);
}

/* A file instead of a directory: its config.json stands for the directory it is in. */
static oomsight_status open_file(oos_arena *arena, const char *data_dir, const char *path,
                                 const char *overrides, oos_model *ret_model, oomsight_error *reterr)
{
    oomsight_status status;
    if (ends_with(path, "/config.json")) {
        char *dir = oos_arena_copy(arena, (oos_view){path, strlen(path) - strlen("/config.json")});
        return dir ? open_dir(arena, data_dir, *dir ? dir : "/", overrides, ret_model, reterr)
                   : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    }
    if (ends_with(path, ".gguf"))
        status = oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                          "GGUF files are not read: name the directory of the original model");
    else
        status =
            oos_fail(reterr, OOMSIGHT_USAGE, "a model is a directory with a config.json, and this is a file");
    return oos_fail_in(reterr, status, path);
}

static oomsight_status nowhere(oos_arena *arena, const oos_hub_id *id, bool allow_hub, oomsight_error *reterr)
{
    const char *cache = oos_hfcache_folder(arena);
    const char *advice = allow_hub ? "HF_HUB_OFFLINE forbids to contact the Hugging Face Hub: unset it"
                                   : "--offline forbids to contact the Hugging Face Hub: remove it";
    return oos_fail(
        reterr, OOMSIGHT_NOT_FOUND,
        "%.100s is not a directory and not in the Hugging Face cache (%.150s) at revision %.60s; %s, or "
        "download it first",
        id->name, cache ? cache : "no HOME", id->revision, advice);
}

/* The built-in model that may be meant, behind what went wrong. What the hub keeps to itself is there under its name. */
static oomsight_status suggest(oos_arena *arena, const char *data_dir, const oos_hub_id *id,
                               oomsight_status status, oomsight_error *reterr)
{
    const char *meant = status == OOMSIGHT_IO ? NULL : oos_catalogue_nearest(arena, data_dir, id->name);
    if (!meant || !reterr || strcmp(meant, id->name) == 0) return status;
    oomsight_error const was = *reterr;
    bool const same = ends_with(meant, id->name); /* but for the owner */
    oos_fail(reterr, status, "%.300s; did you mean %.100s%s?", was.text, meant,
             same ? "" : ", which is another model");
    return was.path[0] ? oos_fail_in(reterr, status, was.path) : status;
}

oomsight_status oos_locate(oos_arena *arena, const char *data_dir, const char *word, bool allow_hub,
                           const char *overrides, oos_model *ret_model, oomsight_error *reterr)
{
    if (oos_file_is_dir(word)) return open_dir(arena, data_dir, word, overrides, ret_model, reterr);
    if (oos_file_exists(word)) return open_file(arena, data_dir, word, overrides, ret_model, reterr);
    const char *at = strrchr(word, '@');
    if (at) { /* a revision means nothing to a directory, and the engine takes it there too */
        const char *dir = oos_arena_copy(arena, (oos_view){word, (size_t)(at - word)});
        if (dir && oos_file_is_dir(dir)) return open_dir(arena, data_dir, dir, overrides, ret_model, reterr);
    }

    oos_hub_id id;
    if (!oos_hub_id_parse(arena, word, &id)) {
        oos_fail(reterr, OOMSIGHT_NOT_FOUND,
                 "no such directory, and not the name of a model on the Hugging Face Hub");
        return oos_fail_in(reterr, OOMSIGHT_NOT_FOUND, word);
    }
    const char *dir = oos_hfcache_find(arena, &id);
    if (dir) return open_dir(arena, data_dir, dir, overrides, ret_model, reterr);
    oos_listed listed;
    if (strcmp(id.revision, "main") == 0) {
        oomsight_status const found = oos_catalogue_find(arena, data_dir, id.name, &listed, reterr);
        if (found == OOMSIGHT_OK)
            return oos_catalogue_open(arena, data_dir, &listed, overrides, ret_model, reterr);
        if (found != OOMSIGHT_NOT_FOUND) return found;
    }
    oomsight_status const status = allow_hub && !oos_hub_offline()
                                       ? oos_hub_open(arena, data_dir, &id, overrides, ret_model, reterr)
                                       : nowhere(arena, &id, allow_hub, reterr);
    return status == OOMSIGHT_OK ? status : suggest(arena, data_dir, &id, status, reterr);
}
