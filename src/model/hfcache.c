/* Finding models in the local Hugging Face cache. Nothing is written to it. */
#include "model/model.h"
#include "base/file.h"

#include <dirent.h>
#include <stdlib.h>

static bool id_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

/* A revision is a branch, a tag, a commit or refs/pr/1: no step up, nothing that a path or an address could trip over. */
static bool revision_ok(const char *revision)
{
    if (!*revision || *revision == '/' || strstr(revision, "..") || strlen(revision) > 200) return false;
    for (const char *at = revision; *at; at++)
        if (!id_char(*at) && !strchr("/+~", *at)) return false;
    return true;
}

bool oos_hub_id_parse(oos_arena *arena, const char *word, oos_hub_id *ret_id)
{
    size_t len = 0, slashes = 0;
    for (; word[len] && word[len] != '@'; len++) {
        if (word[len] == '/') {
            slashes++;
            if (len == 0 || !id_char(word[len + 1])) return false;
        } else if (!id_char(word[len])) {
            return false;
        }
    }
    /* the hub's own rule: at most one slash, no name that begins with a dot or a dash, no "..", no "--" */
    if (len == 0 || len > 200 || slashes > 1 || word[0] == '.' || word[0] == '-') return false;
    char *name = oos_arena_copy(arena, (oos_view){word, len});
    if (!name || strstr(name, "..") || strstr(name, "--") || strstr(name, "/.") || strstr(name, "/-"))
        return false;
    const char *revision = word[len] == '@' ? oos_arena_copy(arena, oos_view_of(word + len + 1)) : "main";
    if (!revision || !revision_ok(revision)) return false;
    *ret_id = (oos_hub_id){name, revision};
    return true;
}

static const char *given(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

const char *oos_hfcache_folder(oos_arena *arena)
{
    const char *value = given("HF_HUB_CACHE");
    if (!value) value = given("HUGGINGFACE_HUB_CACHE");
    if (value) return oos_arena_copy(arena, oos_view_of(value));
    if ((value = given("HF_HOME"))) return oos_arena_format(arena, "%s/hub", value);
    if ((value = given("XDG_CACHE_HOME"))) return oos_arena_format(arena, "%s/huggingface/hub", value);
    if ((value = given("HOME"))) return oos_arena_format(arena, "%s/.cache/huggingface/hub", value);
    return NULL;
}

/* A snapshot is of use when it has a config. */
static const char *snapshot(oos_arena *arena, const char *model, const char *commit)
{
    const char *dir = oos_arena_format(arena, "%s/snapshots/%s", model, commit);
    const char *config = dir ? oos_arena_format(arena, "%s/config.json", dir) : NULL;
    return config && oos_file_exists(config) ? dir : NULL;
}

/* The commit that refs/<revision> holds; NULL: none. */
static const char *commit_of(oos_arena *arena, const char *model, const char *revision)
{
    const char *path = oos_arena_format(arena, "%s/refs/%s", model, revision);
    oos_view bytes;
    if (!path || oos_file_read(arena, path, 256, &bytes, NULL) != OOMSIGHT_OK) return NULL;
    while (bytes.len && (bytes.ptr[bytes.len - 1] == '\n' || bytes.ptr[bytes.len - 1] == ' ')) bytes.len--;
    for (size_t i = 0; i < bytes.len; i++)
        if (!id_char(bytes.ptr[i])) return NULL;
    if (bytes.len == 0 || bytes.ptr[0] == '.') return NULL;
    return oos_arena_copy(arena, bytes);
}

/* The one snapshot there is: tools that link a single download leave no refs. NULL: none, or a choice. */
static const char *only_snapshot(oos_arena *arena, const char *model)
{
    const char *path = oos_arena_format(arena, "%s/snapshots", model);
    DIR *dir = path ? opendir(path) : NULL;
    const char *found = NULL;
    size_t count = 0;
    if (!dir) return NULL;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        const char *usable = snapshot(arena, model, entry->d_name);
        if (!usable) continue;
        found = usable;
        count++;
    }
    closedir(dir);
    return count == 1 ? found : NULL;
}

const char *oos_hfcache_find(oos_arena *arena, const oos_hub_id *id)
{
    const char *folder = oos_hfcache_folder(arena);
    if (!folder) return NULL;
    oos_view const name = oos_view_of(id->name);
    const char *slash = memchr(name.ptr, '/', name.len);
    const char *model = slash ? oos_arena_format(arena, "%s/models--%.*s--%s", folder,
                                                 (int)(slash - name.ptr), name.ptr, slash + 1)
                              : oos_arena_format(arena, "%s/models--%s", folder, id->name);
    if (!model || !oos_file_is_dir(model)) return NULL;
    const char *commit = commit_of(arena, model, id->revision);
    const char *dir = commit ? snapshot(arena, model, commit) : NULL;
    if (!dir && !strchr(id->revision, '/'))
        dir = snapshot(arena, model, id->revision); /* a commit, named in full */
    if (!dir && strcmp(id->revision, "main") == 0) dir = only_snapshot(arena, model);
    return dir;
}
