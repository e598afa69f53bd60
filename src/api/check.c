/* The public side of check: files and folders read, commands found in them, each given to plan. What is not looked at is told. */
#include "api/api.h"
#include "base/file.h"
#include "base/text.h"
#include "command/command.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_LIMIT = 16 << 20, DEPTH_MAX = 32, BEGINNING_BYTES = 4096 };

bool oos_check_grow(oos_arena *arena, void **list, size_t count, size_t *room, size_t item_bytes)
{
    if (count < *room) return true;
    size_t const more = *room ? *room * 2 : 16;
    void *larger = oos_arena_take_array(arena, more, item_bytes);
    if (!larger) return false;
    if (count) memcpy(larger, *list, count * item_bytes);
    *list = larger;
    *room = more;
    return true;
}

oos_checked *oos_check_next(oomsight_check *check)
{
    if (!oos_check_grow(check->arena, (void **)&check->list, check->count, &check->room, sizeof *check->list))
        return NULL;
    return &check->list[check->count++];
}

/* A file, or a place in it, that was not looked at. */
static oos_checked *doubt_one(oomsight_check *check, const char *path, uint32_t line, oos_level level,
                              const char *problem)
{
    oos_found *found = OOS_NEW(check->arena, oos_found);
    oos_checked *checked = found ? oos_check_next(check) : NULL;
    if (!checked) return NULL;
    *found = (oos_found){.line = line, .kind = "file"};
    *checked =
        (oos_checked){.path = path, .found = found, .problem = problem, .doubt = true, .doubt_level = level};
    return checked;
}

static void list_add(oos_arena *arena, const char ***list, size_t *count, size_t *room, const char *word)
{
    const char *copy = oos_arena_copy(arena, oos_view_of(word));
    if (copy && oos_check_grow(arena, (void **)list, *count, room, sizeof **list)) (*list)[(*count)++] = copy;
}

static bool is_regular(const char *path)
{
    struct stat what;
    return stat(path, &what) == 0 && S_ISREG(what.st_mode);
}

static oomsight_status check_bytes(oomsight_check *check, const oomsight_check_params *params,
                                   oos_arena *arena, const char *path, oos_view bytes, oomsight_error *reterr)
{
    const oos_found *list;
    size_t count;
    oos_found_doubt doubt;
    size_t const from = check->count;
    check->device_count = 0;
    OOS_TRY(oos_found_read(arena, path, bytes, &list, &count, &doubt, reterr));
    for (size_t k = 0; k < count; k++) {
        if (check->told) check->told(check->told_data, path, k + 1, count);
        oos_check_command(check, params, path, &list[k], k);
    }
    oos_check_room(check, params, list, from);
    for (size_t k = 0; k < doubt.skip_count; k++) {
        const oos_found_skip *skip = &doubt.skips[k];
        oos_checked *checked = doubt_one(check, path, skip->line,
                                         skip->broken     ? OOS_LEVEL_ERROR
                                         : skip->left_out ? OOS_LEVEL_NOTE
                                                          : OOS_LEVEL_WARNING,
                                         oos_arena_copy(check->arena, oos_view_of(skip->what)));
        if (checked) checked->left_out = skip->left_out;
    }
    for (size_t k = 0; k < doubt.sourced_count; k++) {
        const oos_found_skip *file = &doubt.sourced[k];
        oos_checked *checked = NULL;
        if (strcmp(path, "-") != 0 && is_regular(file->what))
            list_add(check->arena, &check->named, &check->named_count, &check->named_room, file->what);
        else
            checked = doubt_one(
                check, path, file->line, OOS_LEVEL_NOTE,
                oos_arena_format(check->arena, "it takes in %s, which was not looked at", file->what));
        if (checked) checked->left_out = true;
    }
    if (doubt.mentions)
        doubt_one(check, path, doubt.line, OOS_LEVEL_WARNING,
                  oos_arena_format(check->arena, "names %s, but no command that starts it was understood",
                                   doubt.mentions));
    for (size_t k = 0; k < doubt.named_count; k++)
        list_add(check->arena, &check->named, &check->named_count, &check->named_room, doubt.named[k]);
    return OOMSIGHT_OK;
}

/* The text of standard input, up to the limit. */
static oomsight_status input_read(oos_arena *arena, oos_view *ret_bytes, oomsight_error *reterr)
{
    oos_text text = {0};
    char part[64 << 10];
    ssize_t got;
    while ((got = read(STDIN_FILENO, part, sizeof part)) > 0 && text.len <= FILE_LIMIT)
        oos_text_add(&text, (oos_view){part, (size_t)got});
    const char *copy =
        text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr ? text.ptr : "", text.len});
    *ret_bytes = (oos_view){copy ? copy : "", text.len};
    oos_text_free(&text);
    if (!copy) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for standard input");
    if (got < 0) return oos_fail(reterr, OOMSIGHT_IO, "standard input cannot be read");
    if (ret_bytes->len > FILE_LIMIT)
        return oos_fail(reterr, OOMSIGHT_MALFORMED,
                        "standard input has more than 16 MiB and was not looked at");
    if (ret_bytes->len == 0) return oos_fail(reterr, OOMSIGHT_MALFORMED, "standard input is empty");
    return OOMSIGHT_OK;
}

static oomsight_status check_file(oomsight_check *check, const oomsight_check_params *params,
                                  const char *path, oomsight_error *reterr)
{
    oos_view bytes;
    oomsight_error error = {0};
    oos_arena *arena = oos_arena_create(64 << 10); /* of this file: what is kept is copied */
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
    list_add(check->arena, &check->looked, &check->looked_count, &check->looked_room, path);
    oomsight_status status = strcmp(path, "-") == 0 ? input_read(arena, &bytes, &error)
                                                    : oos_file_read(arena, path, FILE_LIMIT, &bytes, &error);
    check->files += status != OOMSIGHT_IO && status != OOMSIGHT_NOT_FOUND;
    if (status == OOMSIGHT_OK) {
        status = check_bytes(check, params, arena, path, bytes, reterr);
    } else if (status == OOMSIGHT_NOMEM) {
        status = oos_fail(reterr, status, "no memory for a check");
    } else { /* the others are looked at all the same */
        doubt_one(check, path, 0, OOS_LEVEL_NOTE, oos_arena_format(check->arena, "%s", error.text));
        status = OOMSIGHT_OK;
    }
    oos_arena_free(arena);
    return status;
}

/* What version control and package managers keep beside a project. */
static bool is_left_out(const char *name)
{
    static const char *const names[] = {".",           "..",   ".git",  ".hg", ".svn", "node_modules",
                                        "__pycache__", "venv", ".venv", ".tox"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* A file that is too large matters when it is text. */
static bool begins_as_text(const char *path)
{
    char bytes[BEGINNING_BYTES];
    FILE *file = fopen(path, "re");
    if (!file) return true;
    size_t const got = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return !memchr(bytes, '\0', got);
}

static oomsight_status check_folder(oomsight_check *check, const oomsight_check_params *params,
                                    const char *path, unsigned depth, oomsight_error *reterr);

/* Does the link lead to a place in the folder that was given? */
static bool is_inside(const char *folder, const char *path)
{
    char *place = realpath(path, NULL);
    size_t const len = strlen(folder);
    bool const inside =
        place && strncmp(place, folder, len) == 0 && (place[len] == '/' || strcmp(folder, "/") == 0);
    free(place);
    return inside;
}

static oomsight_status check_entry(oomsight_check *check, const oomsight_check_params *params,
                                   const char *path, unsigned depth, oomsight_error *reterr)
{
    struct stat what, aim;
    if (lstat(path, &what) != 0 || stat(path, &aim) != 0) {
        doubt_one(check, path, 0, OOS_LEVEL_NOTE, "it cannot be read");
    } else if (S_ISLNK(what.st_mode) && S_ISDIR(aim.st_mode)) {
        doubt_one(check, path, 0, OOS_LEVEL_NOTE, "a link to a folder was not looked at");
    } else if (S_ISLNK(what.st_mode) && !is_inside(check->folder, path)) {
        doubt_one(check, path, 0, OOS_LEVEL_NOTE, "a link to a file outside of the folder was not looked at");
    } else if (S_ISDIR(aim.st_mode)) {
        return check_folder(check, params, path, depth + 1, reterr);
    } else if (S_ISREG(aim.st_mode) && aim.st_size <= FILE_LIMIT) {
        return check_file(check, params, path, reterr);
    } else if (S_ISREG(aim.st_mode) && begins_as_text(path)) {
        check->files++;
        doubt_one(check, path, 0, OOS_LEVEL_NOTE, "it has more than 16 MiB and was not looked at");
    }
    return OOMSIGHT_OK;
}

/* Every file of a folder, by name. Links to files of the folder are read, all others are told. */
static oomsight_status check_folder(oomsight_check *check, const oomsight_check_params *params,
                                    const char *path, unsigned depth, oomsight_error *reterr)
{
    const char **names = NULL;
    size_t count = 0, room = 0;
    DIR *folder = depth < DEPTH_MAX ? opendir(path) : NULL;
    if (!folder) {
        doubt_one(check, path, 0, OOS_LEVEL_NOTE,
                  depth < DEPTH_MAX ? "this folder cannot be read"
                                    : "this folder lies more than 32 levels deep and was not looked at");
        return OOMSIGHT_OK;
    }
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (!is_left_out(entry->d_name)) list_add(check->arena, &names, &count, &room, entry->d_name);
    (void)closedir(folder);
    if (count) qsort(names, count, sizeof *names, oos_text_order);
    for (size_t i = 0; i < count; i++) {
        const char *inner = oos_arena_format(check->arena, "%s/%s", path, names[i]);
        if (!inner) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
        OOS_TRY(check_entry(check, params, inner, depth, reterr));
    }
    return OOMSIGHT_OK;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Files that others take as they are, and that nobody gave. */
static oomsight_status check_named(oomsight_check *check, const oomsight_check_params *params,
                                   oomsight_error *reterr)
{
    for (size_t i = 0; i < check->named_count; i++) {
        bool looked = false;
        for (size_t k = 0; k < check->looked_count && !looked; k++)
            looked = is_same_file(check->named[i], check->looked[k]);
        if (!looked) OOS_TRY(check_file(check, params, check->named[i], reterr));
    }
    return OOMSIGHT_OK;
}

static oomsight_status check_fill(oomsight_check *check, const oomsight_check_params *params,
                                  oomsight_error *reterr)
{
    for (size_t i = 0; i < params->path_count; i++) {
        const char *path = oos_arena_copy(check->arena, oos_view_of(params->paths[i]));
        if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
        char *folder = oos_file_is_dir(path) ? realpath(path, NULL) : NULL;
        check->folder = oos_arena_copy(check->arena, oos_view_of(folder ? folder : ""));
        free(folder);
        if (!check->folder) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
        OOS_TRY(oos_file_is_dir(path) ? check_folder(check, params, path, 0, reterr)
                                      : check_file(check, params, path, reterr));
    }
    return check_named(check, params, reterr);
}

oomsight_status oomsight_check_create(const oomsight_check_params *params, oomsight_check **ret_check,
                                      oomsight_error *reterr)
{
    return oomsight_check_create_with(params, NULL, ret_check, reterr);
}

oomsight_status oomsight_check_create_with(const oomsight_check_params *params,
                                           const oomsight_check_with *with, oomsight_check **ret_check,
                                           oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_check_params, params);
    if (!params->data) return oos_fail(reterr, OOMSIGHT_USAGE, "a check needs data");
    OOS_TRY(oos_api_engine_known(params->engine, reterr));
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_check *check = arena ? OOS_NEW(arena, oomsight_check) : NULL;
    if (!check) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
    }
    check->arena = arena;
    if (with) {
        check->asker = with->asker;
        check->told = with->told;
        check->told_data = with->told_data;
    }
    oomsight_status const status = OOS_WHOLE_STATUS(params, check_fill(check, params, reterr));
    if (status != OOMSIGHT_OK) {
        oomsight_check_free(check);
        return status;
    }
    *ret_check = check;
    return OOMSIGHT_OK;
}

void oomsight_check_free(oomsight_check *check)
{
    if (!check) return;
    oos_check_forget(check);
    oos_arena_free(check->arena);
}

static size_t count_level(const oomsight_check *check, oos_level level)
{
    size_t count = 0;
    for (size_t i = 0; i < check->count; i++) count += oos_check_level(&check->list[i]) == level;
    return count;
}

int oomsight_check_result_get(const oomsight_check *check, oomsight_check_result *ret_result)
{
    oomsight_check_result result = {.files = check->files,
                                    .item_count = check->count,
                                    .failing = count_level(check, OOS_LEVEL_ERROR),
                                    .doubtful = count_level(check, OOS_LEVEL_WARNING),
                                    .unplanned = count_level(check, OOS_LEVEL_NOTE)};
    for (size_t i = 0; i < check->count; i++) {
        result.unplanned += check->list[i].doubt && check->list[i].doubt_level == OOS_LEVEL_WARNING;
        result.unplanned -= check->list[i].left_out;
        result.doubtful += check->list[i].left_out;
    }
    oos_params_give(ret_result, &result, sizeof result);
    return 1;
}

int oomsight_check_item_get(const oomsight_check *check, size_t index, oomsight_check_item *ret_item)
{
    if (index >= check->count) return 0;
    const oos_checked *checked = &check->list[index];
    const oos_found *found = checked->found;
    const oos_checked_plan *plan = checked->plan;
    oomsight_check_item item = {.path = checked->path,
                                .line = found->line,
                                .level = oos_check_level_word(oos_check_level(checked)),
                                .kind = found->kind,
                                .name = found->name,
                                .command = found->shown,
                                .command_count = found->shown_count,
                                .engine = checked->engine,
                                .engine_version = found->engine_version,
                                .model = checked->model,
                                .gpu = found->gpu,
                                .verdict = OOMSIGHT_VERDICT_UNKNOWN,
                                .reason = checked->problem};
    if (plan) {
        item.engine_version = plan->engine_version;
        item.gpu = plan->device;
        item.verdict = plan->verdict;
        item.phase = plan->phase != OOS_PHASE_COUNT ? oos_phase_word(plan->phase) : NULL;
        item.reason = plan->why;
        item.best_flags = oos_checked_mend(checked)->best_flags;
        item.best_command = oos_checked_mend(checked)->best_command;
    }
    oos_params_give(ret_item, &item, sizeof item);
    return 1;
}

/* The suggested words of each command of a file, in that file as it is now. */
static oomsight_status put_patch(oos_arena *arena, const oos_checked *list, size_t count, oos_text *text,
                                 oomsight_error *reterr)
{
    oos_view bytes;
    oos_patch patch = {0};
    oomsight_error error = {0};
    const char **why = OOS_NEW_ARRAY(arena, const char *, count + 1);
    const char *all = strcmp(list[0].path, "-") == 0 ? "it was read from standard input" : NULL;
    if (!why) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a patch");
    if (!all && (oos_file_read(arena, list[0].path, FILE_LIMIT, &bytes, &error) != OOMSIGHT_OK ||
                 oos_patch_open(arena, list[0].path, bytes, &patch, &error) != OOMSIGHT_OK))
        all = error.text;
    for (size_t i = 0; i < count; i++) {
        const oos_checked *checked = &list[i];
        const oos_checked_plan *plan = oos_checked_mend(checked);
        const oos_found *now = checked->at < patch.found_count ? &patch.list[checked->at] : NULL;
        if (all)
            why[i] = oos_arena_copy(arena, oos_view_of(all));
        else if (!plan || !plan->best_command)
            why[i] = checked->first  ? "it is to be started before the other"
                     : checked->mate ? "it is the other command that changes"
                                     : "nothing is suggested";
        else if (!plan->edited)
            why[i] = "more than words of the command changes";
        else if (!now || now->line != checked->found->line || now->count != checked->found->count)
            why[i] = "it has changed since";
        else
            why[i] = oos_patch_command(&patch, checked->at, plan->edited, plan->edited_count);
    }
    oos_report_check_patch(text, &patch, list, why, count);
    return OOMSIGHT_OK;
}

/* File by file; what starts needs no patch. */
static oomsight_status put_patches(const oos_check_page *page, oos_text *text, oomsight_error *reterr)
{
    for (size_t i = 0; i < page->count;) {
        oos_arena *arena = oos_arena_create(64 << 10);
        size_t end = i, count = 0;
        while (end < page->count && strcmp(page->list[end].path, page->list[i].path) == 0) end++;
        oos_checked *list = arena ? OOS_NEW_ARRAY(arena, oos_checked, end - i + 1) : NULL;
        oomsight_status status =
            list ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a patch");
        for (; list && i < end; i++)
            if (oos_check_level(&page->list[i]) != OOS_LEVEL_OK || page->list[i].mend)
                list[count++] = page->list[i];
        if (list && count) status = put_patch(arena, list, count, text, reterr);
        oos_arena_free(arena);
        if (status != OOMSIGHT_OK) return status;
    }
    return OOMSIGHT_OK;
}

oomsight_status oomsight_check_render(const oomsight_check *check, const oomsight_render_params *params,
                                      char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    oos_check_page const page = {.list = check->list, .count = check->count, .files = check->files};
    switch (params->format) {
    case OOMSIGHT_FORMAT_TEXT: oos_report_check_text(&text, &page, params); break;
    case OOMSIGHT_FORMAT_JSON: oos_report_check_json(&text, &page); break;
    case OOMSIGHT_FORMAT_GITHUB: oos_report_check_github(&text, &page); break;
    case OOMSIGHT_FORMAT_SARIF: oos_report_check_sarif(&text, &page); break;
    case OOMSIGHT_FORMAT_HTML: oos_report_check_html(&text, &page, params); break;
    case OOMSIGHT_FORMAT_PATCH: {
        oomsight_status const status = put_patches(&page, &text, reterr);
        if (status != OOMSIGHT_OK) {
            oos_text_free(&text);
            return status;
        }
        break;
    }
    case OOMSIGHT_FORMAT_MARKDOWN:
    case OOMSIGHT_FORMAT_JUNIT:
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "checks are written as text, JSON, HTML, GitHub annotations, SARIF or a patch");
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}
