/* How a command starts the engine: which word is its entry, who asks, and what environment stands before it. */
#include "command/command.h"
#include "base/ascii.h"
#include "base/edits.h"
#include "base/scan.h"
#include "facts/facts.h"

#include <stdlib.h>

static bool upper_name(const char *word, size_t *ret_len)
{
    size_t len = 0;
    for (; word[len] && word[len] != '='; len++) {
        char const c = word[len];
        if (!((c >= 'A' && c <= 'Z') || c == '_' || (len && c >= '0' && c <= '9'))) return false;
    }
    *ret_len = len;
    return len > 0 && word[len] == '=';
}

static bool lower_name(const char *word)
{
    size_t len = 0;
    for (; word[len] && word[len] != '='; len++) {
        char const c = word[len];
        if (!((c >= 'a' && c <= 'z') || c == '_' || (len && c >= '0' && c <= '9'))) return false;
    }
    return len > 0 && word[len] == '=';
}

/* What PyTorch reads, whatever engine runs on it. */
static bool torch_variable_set(oos_arena *arena, oos_engine_env *env, oos_view name, const char *value)
{
    if (!oos_view_is(name, "PYTORCH_CUDA_ALLOC_CONF") && !oos_view_is(name, "PYTORCH_ALLOC_CONF"))
        return false;
    env->alloc_conf = oos_arena_copy(arena, oos_view_of(value));
    return true;
}

static oos_flag yes_or_no(const char *value)
{
    static const char *const yes[] = {"1", "true", "yes", "y"}, *const no[] = {"0", "false", "no", "n"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (oos_same(value, yes[i])) return (oos_flag){true, true};
        if (oos_same(value, no[i])) return (oos_flag){true, false};
    }
    return (oos_flag){0};
}

const oos_given_variable *oos_engine_env_given(const oos_engine_env *env, const char *name)
{
    for (size_t i = 0; i < env->variable_count; i++)
        if (strcmp(env->variables[i].name, name) == 0) return &env->variables[i];
    return NULL;
}

/* One NAME=value word: typed where the release knows the name, and noted. */
static bool variable_take(oos_serve_reader *in, oos_engine_env *env, oos_given_variable *list,
                          const char *word)
{
    oos_view const name = {word, strcspn(word, "=")};
    oos_env_hit const hit = oos_env_find(in->table, name, word + name.len + 1, in->version);
    oos_given_variable given = {
        .effect = hit.effect, .own = hit.own, .listed = hit.listed, .logged = hit.logged};
    given.name = oos_arena_copy(in->arena, name);
    given.value = word + name.len + 1;
    given.on = yes_or_no(given.value);
    if (hit.why.len) given.why = oos_scan_text(in->arena, hit.why);
    if (!given.name || (hit.why.len && !given.why)) return false;
    const char *value = word + name.len + 1;
    if (hit.effect != OOS_ENV_ABSENT &&
        (torch_variable_set(in->arena, env, name, value) ||
         (in->dialect->variable_set && in->dialect->variable_set(in->arena, env, name, value))))
        given.effect = OOS_ENV_MODELLED;
    size_t at = 0;
    while (at < env->variable_count && strcmp(list[at].name, given.name) != 0) at++;
    list[at] = given;
    if (at == env->variable_count) env->variable_count++;
    return true;
}

/* All of them, up to the word that starts the engine. */
static oomsight_status variables_take(oos_serve_reader *in, const char *const *words, size_t count,
                                      oos_engine_env *env)
{
    size_t given = 0, ignored;
    for (size_t i = 0; i < count; i++) given += upper_name(words[i], &ignored);
    if (given == 0) return OOMSIGHT_OK;
    if (given > OOS_VARIABLES_MAX)
        return oos_fail(in->reterr, OOMSIGHT_USAGE, "%zu environment variables are more than %d", given,
                        OOS_VARIABLES_MAX);
    oos_given_variable *list = OOS_NEW_ARRAY(in->arena, oos_given_variable, given);
    env->variables = list;
    bool fine = list != NULL;
    for (size_t i = 0; fine && i < count; i++)
        if (upper_name(words[i], &ignored)) fine = variable_take(in, env, list, words[i]);
    return fine ? OOMSIGHT_OK : oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for the environment");
}

oomsight_status oos_serve_enter(oos_serve_reader *in, const char *const *words, size_t count,
                                oos_serve_entry *ret_entry, oos_engine_env *env)
{
    const oos_dialect *dialect = in->dialect;
    oomsight_error *reterr = in->reterr;
    oos_serve_entry entry = {.usage = OOS_USAGE_SERVER};
    size_t at = 0, ignored;
    bool found = false;
    if (count == 0) return oos_fail(reterr, OOMSIGHT_USAGE, "no command: expected `%s`", dialect->start);
    for (; at < count && !found; at++) {
        if (dialect->image && strstr(words[at], dialect->image)) env->image = true;
        if (!upper_name(words[at], &ignored)) found = dialect->entry_at(words, count, at, &entry);
    }
    OOS_TRY(variables_take(in, words, at, env));
    /* model=x tensor_parallel_size=4; only when nothing else is there, for an environment may have such names too */
    for (at = 0; dialect->keywords && at < count && !found; at++)
        if (lower_name(words[at])) {
            entry = (oos_serve_entry){.usage = OOS_USAGE_LLM_CLASS, .keywords = true, .first = at};
            found = true;
        }
    /* `vllm serv` */
    const char *serve = dialect->start && !found ? strchr(dialect->start, ' ') : NULL;
    for (at = 0; serve && at + 1 < count; at++) {
        oos_view const own = {dialect->start, (size_t)(serve - dialect->start)};
        oos_view const second = {serve + 1, strcspn(serve + 1, " ")};
        if (oos_view_is(own, words[at]) && oos_edits(oos_view_of(words[at + 1]), second) <= 2)
            return oos_fail(reterr, OOMSIGHT_USAGE,
                            "`%.40s %.40s` is not a command of %s; did you mean `%.*s`?", words[at],
                            words[at + 1], words[at], (int)(own.len + 1 + second.len), own.ptr);
    }
    if (!found)
        return oos_fail(reterr, OOMSIGHT_USAGE, "`%.80s` is not a command that starts %s (planned here: %s)",
                        words[0], dialect->expected, oos_engine_titles());
    if (entry.client) return oos_fail(reterr, OOMSIGHT_USAGE, "%s", dialect->client);
    *ret_entry = entry;
    return OOMSIGHT_OK;
}
