/* Changing a command that was read, so that it can be planned again. */
#include "command/serve.h"

#include <string.h>

static void field_clear(oos_serve *serve, const char *flag)
{
#define CLEAR_IF(name_, flag_, none_)                                                                        \
    if (strcmp(flag, flag_) == 0) serve->name_ = none_;
#define U64(name, flag_) CLEAR_IF(name, flag_, (oos_u64){0})
#define F64(name, flag_) CLEAR_IF(name, flag_, (oos_f64){0})
#define YES(name, flag_) CLEAR_IF(name, flag_, (oos_flag){0})
#define STR(name, flag_) CLEAR_IF(name, flag_, NULL)
    OOS_SERVE_MAP(U64, F64, YES, STR)
#undef CLEAR_IF
#undef U64
#undef F64
#undef YES
#undef STR
    if (strcmp(flag, "--max-model-len") == 0) {
        serve->max_model_len = (oos_u64){0};
        serve->max_model_len_auto = false;
    }
    if (strcmp(flag, "--speculative-config") == 0) serve->speculative = (oos_speculative){0};
    if (strcmp(flag, "--compilation-config") == 0) serve->compilation = (oos_compilation){0};
    if (strcmp(flag, "--hf-overrides") == 0) serve->hf_overrides_json = NULL;
}

/* `--no-x` is the same switch as `--x`. */
static bool same_flag(const char *given, const char *flag)
{
    if (strcmp(given, flag) == 0) return true;
    return strncmp(given, "--no-", 5) == 0 && strncmp(flag, "--", 2) == 0 && strcmp(given + 5, flag + 2) == 0;
}

bool oos_serve_leave_out(oos_arena *arena, oos_serve *serve, const char *flag)
{
    oos_given_flag *kept = OOS_NEW_ARRAY(arena, oos_given_flag, serve->flag_count);
    if (!kept) return false;
    size_t count = 0;
    const oos_serve_refusal *r = &serve->refusal;
    bool const strange = r->unrecognized && strcmp(r->flag, flag) == 0;
    for (size_t i = 0; i < serve->flag_count; i++) {
        const oos_given_flag *given = &serve->flags[i];
        bool const gone =
            strange ? given->effect == OOS_FLAG_UNKNOWN || given->absent : same_flag(given->name, flag);
        if (gone)
            field_clear(serve, given->name); /* it was read, whether the release has it or not */
        else
            kept[count++] = *given;
    }
    serve->flags = kept;
    serve->flag_count = count;
    field_clear(serve, flag);
    if (r->flag && same_flag(r->flag, flag)) serve->refusal = (oos_serve_refusal){0};
    return true;
}

bool oos_serve_set_u64(oos_serve *serve, const char *flag, uint64_t value)
{
#define U64(name, flag_)                                                                                     \
    if (strcmp(flag, flag_) == 0) {                                                                          \
        serve->name = oos_u64_of(value);                                                                     \
        return true;                                                                                         \
    }
#define NOT(name, flag_)
    OOS_SERVE_MAP(U64, NOT, NOT, NOT)
#undef U64
#undef NOT
    if (strcmp(flag, "--max-model-len") != 0) return false;
    serve->max_model_len = oos_u64_of(value);
    serve->max_model_len_auto = false;
    return true;
}
