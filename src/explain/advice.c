/* Every role of a flag with a value has a function here that knows the current value (from a figure or from the printed set-up) and
 * what is missing. Figures are those of the failing moment: asked for, free, total; needed and available for the KV cache. */
#include "facts/facts.h"
#include "explain/explain.h"
#include "base/ascii.h"
#include "base/locale.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define NUMBER(name) oos_value(c->incident, OOS_NUMBER_##name)
#define KNOWN(name) oos_known(c->incident, OOS_NUMBER_##name)

/* vLLM 0.8.0 to 0.32.0 has the one or the other as its default: whichever makes the change the larger. */
#define LOW_DEFAULT_SHARE 0.9
#define HIGH_DEFAULT_SHARE 0.92

/* Not worth a try: why, in both languages, with the same figures. */
#define REFUTED(to, en, zh, ...)                                                                             \
    (oos_format((to)->why, sizeof(to)->why, en, __VA_ARGS__),                                                \
     oos_format((to)->why_zh, sizeof(to)->why_zh, zh, __VA_ARGS__), (oos_advice_fate)OOS_ADVICE_DROPPED)

/* A card below the first has the second as its largest number of requests, where none is given. */
#define LARGE_CARD (70 * OOS_GIB)
#define SMALL_CARD_SEQS 256

/* Above it SGLang's graphs and activations have a tenth of the device and less. */
#define WIDEST_STATIC 0.9

static double gib(uint64_t bytes)
{
    return (double)bytes / 0x1p30;
}

/* One incident, and the flag in question, of the engine that has this ladder. */
typedef struct scene {
    const oos_incident *incident;
    const oos_advisers *of;
    const oos_ladder *ladder;
    const char *flag;
} scene;

typedef oos_advice_fate settle(const scene *c, const char *word, oos_settled *to);

static bool printed(const scene *c, const char *flag, double *ret_value)
{
    return oos_setup_value(&c->incident->setup, flag, ret_value);
}

/* The engine's flag of that role, or the one that is usual; "": neither has one. */
static const char *flag_of(const scene *c, oos_role role)
{
    const oos_ladder *of[] = {c->ladder, c->of->ladders[OOS_ENGINE_DEFAULT]};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        for (size_t i = 0; of[k] && i < of[k]->count; i++)
            if (of[k]->list[i].role == role && of[k]->list[i].flag) return of[k]->list[i].flag;
    return "";
}

/* By the name of the process that printed a line at least as many: "Worker_TP7", "[... TP7]"; "[rank7]" may count those of other engines. */
static uint64_t ranks_in(const char *line, const char *name)
{
    enum { RANK_MAX = 4095 }; /* a log may say anything */
    size_t const len = strlen(name);
    uint64_t most = 0;
    for (const char *at = strstr(line, name); at; at = strstr(at + len, name))
        if (oos_is_digit(at[len]) && (at == line || !oos_is_alnum(at[-1])))
            most = oos_max(most, oos_min(strtoull(at + len, NULL, 10), RANK_MAX) + 1);
    return most;
}

/* As the log tells them, or as many as printed figures. */
static uint64_t ranks_of(const scene *c, bool *ret_told)
{
    double now = 0;
    *ret_told = printed(c, flag_of(c, OOS_ROLE_ranks), &now) && now >= 1;
    return *ret_told ? oos_u64_from(now) : c->incident->rank_count;
}

static bool current_share(const scene *c, double otherwise, double *ret_share)
{
    if (KNOWN(gmu)) {
        *ret_share = (double)NUMBER(gmu) / 1e6;
        return *ret_share <= 1; /* a log may say anything */
    }
    if (printed(c, c->flag, ret_share)) return *ret_share > 0 && *ret_share <= 1;
    /* What the engine prints as not default, or a whole command, does not have it: the default holds. */
    *ret_share = otherwise;
    return c->incident->setup.args || c->incident->setup.command;
}

static oos_advice_fate fill_share(oos_settled *to, double share)
{
    double const most = 0.99, shown = share < most ? share : most;
    oos_format(to->value, sizeof to->value, "0.%02u", shown > 0 ? (unsigned)(shown * 100 + 1e-6) : 0);
    return OOS_ADVICE_FILLED;
}

static oos_advice_fate fill_count(oos_settled *to, uint64_t count)
{
    oos_format(to->value, sizeof to->value, "%" PRIu64, count);
    return OOS_ADVICE_FILLED;
}

static oos_advice_fate fill_word(oos_settled *to, const char *word)
{
    oos_format(to->value, sizeof to->value, "%s", word);
    return OOS_ADVICE_FILLED;
}

/* Of a share that is not known: how far it moves. */
static oos_advice_fate fill_step(oos_settled *to, const char *way, double step)
{
    oos_format(to->value, sizeof to->value, "%s, by %.2f", way, step);
    return OOS_ADVICE_FILLED;
}

/* What the request lacked, and a quarter GiB, as a share of the card; 0: not known. */
static double missing_share(const scene *c)
{
    if (!KNOWN(tried) || !KNOWN(total) || !NUMBER(total)) return 0;
    double const lack = (double)oos_sub(NUMBER(tried), NUMBER(free)) + (double)OOS_GIB / 4;
    return ceil(lack / (double)NUMBER(total) * 100) / 100;
}

static oos_advice_fate lower_share(const scene *c, oos_settled *to)
{
    double now;
    double const total = (double)NUMBER(total);
    if (c->incident->phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK && KNOWN(startup_free) && total > 0) {
        double const printed_to = 0.005 * 0x1p30; /* GiB with two digits */
        double const fits = floor(((double)NUMBER(startup_free) - printed_to) / total * 100) / 100;
        return fits >= 0.1 ? fill_share(to, fits)
                           : REFUTED(to, "only %.2f GiB of the device are free", "设备只剩 %.2f GiB 空闲",
                                     gib(NUMBER(startup_free)));
    }
    double const missing = missing_share(c);
    double const step = missing > 0.02 ? missing : 0.05;
    if (!current_share(c, LOW_DEFAULT_SHARE, &now))
        return missing > 0 ? fill_step(to, OOS_ADVICE_LOWER, step) : fill_word(to, OOS_ADVICE_LOWER);
    double const then = now - step;
    if (then >= 0.2) return fill_share(to, then);
    return REFUTED(to, "%.2f GiB are missing: no share of the device leaves as much",
                   "还缺 %.2f GiB：任何占比都留不出这么多", missing * gib(NUMBER(total)));
}

/* The cache that one request of the longest length needs: as printed, or in proportion to the tokens that fit. 0: not known. */
static double kv_needed(const scene *c)
{
    if (KNOWN(kv_needed)) return (double)NUMBER(kv_needed);
    if (!KNOWN(kv_available) || !NUMBER(kv_tokens) || !NUMBER(max_seq_len)) return 0;
    return (double)NUMBER(kv_available) / (double)NUMBER(kv_tokens) * (double)NUMBER(max_seq_len);
}

/* What the KV cache lacks as a share of the card; negative: not known. */
static double kv_missing_share(const scene *c)
{
    const oos_number *available = &c->incident->numbers[OOS_NUMBER_kv_available];
    if (!KNOWN(total) || !NUMBER(total) || !available->known) return -1;
    double const have = available->negative ? -(double)available->value : (double)available->value;
    double const one = kv_needed(c), need = one > 0 ? one : (double)OOS_GIB / 4;
    return need > have ? (need - have) / (double)NUMBER(total) : 0;
}

static oos_advice_fate higher_share(const scene *c, const char *word, oos_settled *to)
{
    enum { HIGHEST = 97 };
    double now, most = HIGHEST / 100.0;
    bool const known = current_share(c, HIGH_DEFAULT_SHARE, &now);
    double const missing = kv_missing_share(c);
    if (known && missing >= 0) most = ceil((now + missing) * 100 + 0.5) / 100;
    /* Of a card that is not known, the few hundredths that may be left are a few GiB at most. */
    bool const far = KNOWN(kv_needed) && KNOWN(kv_available) &&
                     oos_sub(NUMBER(kv_needed), NUMBER(kv_available)) > 4 * OOS_GIB;
    /* Neither what is given nor what is missing: the engine names the flag itself, and nothing here says that it helps. */
    if (!known && !KNOWN(kv_available) && !KNOWN(kv_tokens) && strcmp(word, OOS_ADVICE_HIGHER) != 0)
        return OOS_ADVICE_DROPPED;
    if (!known && missing > 0 && missing <= 0.1)
        return fill_step(to, OOS_ADVICE_HIGHER, ceil(missing * 100) / 100);
    if (!known)
        return missing > 0.1 || (missing < 0 && far) ? OOS_ADVICE_DROPPED : fill_word(to, OOS_ADVICE_HIGHER);
    /* A GiB of a card that is not known is no share of it. */
    if (missing < 0 && kv_needed(c) > 0 && now < 0.95)
        return far ? OOS_ADVICE_DROPPED : fill_word(to, OOS_ADVICE_HIGHER);
    if (missing < 0) most = now < HIGH_DEFAULT_SHARE ? HIGH_DEFAULT_SHARE : now + 0.03;
    if (most <= HIGHEST / 100.0 + 1e-9 && most > now) return fill_share(to, most);
    if (missing > 0)
        return REFUTED(to, "the KV cache lacks %.2f GiB: more than the device has outside of the budget",
                       "KV 缓存还缺 %.2f GiB：多于预算之外的显存", missing * gib(NUMBER(total)));
    return now >= 0.95 ? REFUTED(to, "it is %.2f already", "已经是 %.2f", now) : OOS_ADVICE_DROPPED;
}

/* A cache whose size was given by hand knows no budget. */
static bool is_given(const scene *c)
{
    double bytes;
    return oos_setup_bytes(&c->incident->setup, flag_of(c, OOS_ROLE_cache_bytes), &bytes);
}

static oos_advice_fate settle_share(const scene *c, const char *word, oos_settled *to)
{
    if (is_given(c) && c->incident->phase != OOS_PHASE_INIT_FREE_MEMORY_CHECK) return OOS_ADVICE_DROPPED;
    bool const raise = strcmp(word, "0.95") == 0 || strcmp(word, OOS_ADVICE_HIGHER) == 0;
    return raise ? higher_share(c, word, to) : lower_share(c, to);
}

/* Of an engine whose weights and pool share a fraction of what is free: the least that leaves the pool something, in hundredths: by
 * the engine's own word, else by what it printed of loading, where a hundredth more is for the pool. 0: not known. */
static double least_static(const scene *c, double now)
{
    if (KNOWN(least_fraction)) return ceil((double)NUMBER(least_fraction) / 1e4 - 1e-6) / 100;
    if (c->incident->phase != OOS_PHASE_KV_SIZING || !KNOWN(weights) || !KNOWN(startup_free)) return 0;
    double const taken = (double)NUMBER(weights) / (double)oos_max(NUMBER(startup_free), 1);
    double const least = (ceil(taken * 100) + 1) / 100;
    return least > now ? least : 0;
}

/* "{least}" is that. */
static oos_advice_fate settle_static(const scene *c, const char *word, oos_settled *to)
{
    double now = 0;
    if (KNOWN(static_fraction))
        now = (double)NUMBER(static_fraction) / 1e6;
    else
        printed(c, c->flag, &now);
    double const least = least_static(c, now);
    if (strcmp(word, OOS_ADVICE_LEAST) == 0)
        return least > 0 && least <= 0.97 ? fill_share(to, least) : OOS_ADVICE_DROPPED;
    if (strcmp(word, OOS_ADVICE_HIGHER) == 0) {
        if (least > 0) return OOS_ADVICE_DROPPED;
        return now < WIDEST_STATIC ? fill_word(to, OOS_ADVICE_HIGHER)
                                   : REFUTED(to, "it is %.2f already: graphs and activations need the rest",
                                             "已经是 %.2f：其余的要留给图和激活", now);
    }
    double const missing = missing_share(c), step = missing > 0.02 ? missing : 0.05, then = now - step;
    if (!(now > 0 && now <= 1))
        return missing > 0 ? fill_step(to, OOS_ADVICE_LOWER, step) : fill_word(to, OOS_ADVICE_LOWER);
    return then >= 0.2 ? fill_share(to, then) : OOS_ADVICE_DROPPED;
}

/* The length that fits what there is: the engine's own word, else in proportion. */
static oos_advice_fate settle_length(const scene *c, const char *word, oos_settled *to)
{
    enum { STEP = 16 };
    if (strcmp(word, "auto") == 0) return OOS_ADVICE_AS_IT_IS;
    if (c->incident->phase != OOS_PHASE_KV_SIZING && strcmp(word, OOS_ADVICE_LOWER) == 0)
        return OOS_ADVICE_AS_IT_IS; /* what the cache holds says nothing of what a step needs */
    double printed_length = 0;
    uint64_t const now = KNOWN(max_seq_len) ? NUMBER(max_seq_len)
                         : printed(c, c->flag, &printed_length) && printed_length > 0
                             ? (uint64_t)printed_length
                             : 0;
    uint64_t fits = NUMBER(est_max_model_len) ? NUMBER(est_max_model_len) : NUMBER(kv_tokens);
    if (!fits && now && KNOWN(kv_needed) && KNOWN(kv_available) && NUMBER(kv_needed))
        fits = oos_u64_from((double)now * (double)NUMBER(kv_available) / (double)NUMBER(kv_needed)) / STEP *
               STEP;
    if (!fits && KNOWN(kv_needed) && KNOWN(kv_available))
        return REFUTED(to, "%.2f GiB are left for the KV cache: no length fits",
                       "KV 缓存只剩 %.2f GiB：任何长度都放不下", gib(NUMBER(kv_available)));
    if (!fits)
        return now > STEP * 2 ? fill_count(to, now / 2 / STEP * STEP) : fill_word(to, OOS_ADVICE_LOWER);
    return now && fits >= now ? OOS_ADVICE_DROPPED : fill_count(to, fits);
}

/* A count that is to fall: below the log's own, or as the record has it. */
static oos_advice_fate below(uint64_t now, const char *word, oos_settled *to)
{
    uint64_t const given = strtoull(word, NULL, 10);
    if (!now || !given || given < now) return OOS_ADVICE_AS_IT_IS;
    return now >= 2 ? fill_count(to, now / 2) : OOS_ADVICE_DROPPED;
}

static oos_advice_fate settle_requests(const scene *c, const char *word, oos_settled *to)
{
    double given = 0;
    uint64_t now = NUMBER(dummy_requests) ? NUMBER(dummy_requests) : NUMBER(max_num_seqs);
    if (!now && printed(c, c->flag, &given) && given >= 1) now = (uint64_t)given;
    /* By default fewer on smaller cards, from vLLM 0.8.4. */
    if (!now && KNOWN(total) && NUMBER(total) < LARGE_CARD) now = SMALL_CARD_SEQS;
    if (word[0] == '{') { /* as many as there are state blocks */
        uint64_t const blocks = NUMBER(state_blocks);
        if (!blocks) return fill_word(to, OOS_ADVICE_LOWER);
        return now && blocks >= now ? OOS_ADVICE_DROPPED : fill_count(to, blocks);
    }
    return below(now, word, to);
}

static oos_advice_fate settle_step(const scene *c, const char *word, oos_settled *to)
{
    double now = 0;
    return printed(c, c->flag, &now) && now >= 1 ? below((uint64_t)now, word, to) : OOS_ADVICE_AS_IT_IS;
}

static oos_advice_fate settle_ranks(const scene *c, const char *word, oos_settled *to)
{
    (void)word;
    bool told;
    uint64_t now = ranks_of(c, &told), least = 1;
    for (size_t i = 0; i < c->incident->evidence_count; i++) {
        const char *line = c->incident->evidence[i].text;
        now = oos_max(now, oos_max(ranks_in(line, "TP"), told ? 0 : ranks_in(line, "[rank")));
    }
    while (!told && least < now) least *= 2; /* of those that are seen at least as many */
    return now >= 2 ? fill_count(to, oos_mul(told ? now : least, 2)) : OOS_ADVICE_AS_IT_IS;
}

static oos_advice_fate settle_cache_type(const scene *c, const char *word, oos_settled *to)
{
    (void)word;
    double const half = kv_needed(c) / 2;
    if (!KNOWN(kv_available) || half <= (double)NUMBER(kv_available)) return OOS_ADVICE_AS_IT_IS;
    return REFUTED(to, "one request still needs %.2f GiB then, and %.2f are there",
                   "那样一个请求仍需 %.2f GiB，而只有 %.2f", half / 0x1p30, gib(NUMBER(kv_available)));
}

/* The cache that was made, less what the request lacked; before one was made, what weights and a GiB for the rest leave of
 * 85 % of the card. */
static oos_advice_fate settle_cache_bytes(const scene *c, const char *word, oos_settled *to)
{
    (void)word;
    uint64_t const lack = oos_add(oos_sub(NUMBER(tried), NUMBER(free)), OOS_GIB / 4);
    uint64_t fits = KNOWN(kv_available) && KNOWN(tried) ? oos_sub(NUMBER(kv_available), lack) : 0;
    bool const anew = !KNOWN(kv_available) || is_given(c);
    if (anew && KNOWN(total) && (KNOWN(weights) || KNOWN(torch_allocated)))
        fits = oos_sub(NUMBER(total) / 100 * 85,
                       oos_add(KNOWN(weights) ? NUMBER(weights) : NUMBER(torch_allocated), OOS_GIB));
    return fits >= OOS_GIB / 4 ? fill_count(to, fits / OOS_MIB * OOS_MIB) : OOS_ADVICE_DROPPED;
}

static oos_advice_fate settle_eager(const scene *c, const char *word, oos_settled *to)
{
    (void)word;
    (void)to;
    return oos_setup_on(&c->incident->setup, c->flag) ? OOS_ADVICE_DROPPED : OOS_ADVICE_AS_IT_IS;
}

/* Weights of four bits are what the advice would bring. */
static oos_advice_fate settle_quantised(const scene *c, const char *word, oos_settled *to)
{
    const oos_setup_text *setup = &c->incident->setup;
    const oos_named *named = oos_advice_named(c->of, OOS_ROLE_checkpoint);
    (void)word;
    (void)to;
    for (size_t i = 0; i < named->value_count; i++)
        if (oos_holds(setup->model, named->values[i]) ||
            oos_setup_begins(setup, named->flag, named->values[i]))
            return OOS_ADVICE_DROPPED;
    return OOS_ADVICE_AS_IT_IS;
}

/* Segments that grow help where enough is cached in pieces. Buffers of the custom all-reduce cannot lie in them: capture ends in a crash
 * (vllm#43923), so of several ranks only those without it. */
static oos_advice_fate settle_segments(const scene *c, const char *word, oos_settled *to)
{
    (void)word;
    bool told;
    uint64_t const ranks = ranks_of(c, &told);
    const char *flag = oos_advice_named(c->of, OOS_ROLE_segments)->flag;
    uint64_t const cached = oos_facts_cached(c->incident);
    bool const known = KNOWN(tried) && (KNOWN(reserved_unallocated) || KNOWN(reserved_total));
    if (!known) return OOS_ADVICE_DROPPED;
    if (cached < NUMBER(tried))
        return REFUTED(to, "%.2f GiB are reserved but unallocated, and %.2f are requested",
                       "已保留而未分配的只有 %.2f GiB，而请求的是 %.2f", gib(cached), gib(NUMBER(tried)));
    if (ranks < 2 || oos_setup_on(&c->incident->setup, flag)) return OOS_ADVICE_AS_IT_IS;
    return REFUTED(to, "with custom all-reduce over %" PRIu64 " ranks it ends in a crash at capture",
                   "%" PRIu64 " 个 rank 使用 custom all-reduce 时会在捕获时崩溃", ranks);
}

/* A quarter more than the limit that was reached, or than the process held. */
static oos_advice_fate settle_limit(const scene *c, const char *word, oos_settled *to)
{
    (void)word;
    uint64_t const now = oos_max(NUMBER(host_limit), NUMBER(host_used));
    if (!now) return fill_word(to, OOS_ADVICE_HIGHER);
    oos_format(to->value, sizeof to->value, "%" PRIu64 "Gi", oos_add(now, now / 4) / OOS_GIB + 1);
    return OOS_ADVICE_FILLED;
}

/* llama.cpp's own margin for --fit (common/common.h, fit_params_target). */
#define PART_MARGIN OOS_GIB

/* What one part gives up when its count falls, against what the failing request found no room for. */
static oos_advice_fate settle_part(const scene *c, const char *word, oos_settled *to)
{
    static const oos_number_id held[] = {OOS_NUMBER_weights, OOS_NUMBER_kv_available, OOS_NUMBER_states,
                                         OOS_NUMBER_activation_peak};
    const oos_named *named = oos_advice_change(c->of, c->flag);
    bool const host = c->incident->phase == OOS_PHASE_HOST_MEMORY;
    bool const requested = KNOWN(tried) && strcmp(c->incident->cause, named->cause) == 0;
    uint64_t const part = requested ? NUMBER(tried) : oos_value(c->incident, named->part);
    uint64_t const room = host ? NUMBER(host_free) : NUMBER(startup_free);
    uint64_t now = oos_value(c->incident, named->count), used = host ? NUMBER(host_wanted) : NUMBER(tried);
    if (named->each && NUMBER(max_num_seqs)) now /= NUMBER(max_num_seqs);
    for (size_t i = 0; !host && i < sizeof held / sizeof *held; i++)
        used = oos_add(used, oos_value(c->incident, held[i]));
    uint64_t const lack = room ? oos_sub(used, room) : 0;
    if (lack && part && part < lack)
        return REFUTED(to, "all of it is %.2f GiB, and %.2f GiB are missing",
                       "全部只有 %.2f GiB，而缺 %.2f GiB", gib(part), gib(lack));
    if (now == 1) return OOS_ADVICE_DROPPED;
    if (!now || !lack || !part) {
        bool const half = now >= 2 * named->step && !named->rises && strcmp(word, OOS_ADVICE_LOWER) == 0;
        return half ? fill_count(to, now / 2 / named->step * named->step) : OOS_ADVICE_AS_IT_IS;
    }
    uint64_t const left = part - lack, kept = left > 2 * PART_MARGIN ? left - PART_MARGIN : left / 2;
    uint64_t const share = oos_u64_from((double)now * (double)kept / (double)part), step = named->step;
    return fill_count(to, named->rises ? now - oos_min(share, now - 1) : oos_max(share / step * step, step));
}

/* Prompts that are kept: what a quarter of the limit holds is there at once, and the host has the rest. */
static oos_advice_fate settle_prompts(const scene *c, const char *word, oos_settled *to)
{
    enum { USUAL_MIB = 8192 }; /* common/common.h, cache_ram_mib */
    (void)word;
    uint64_t const limit = KNOWN(prompt_limit) ? NUMBER(prompt_limit) / OOS_MIB : USUAL_MIB;
    return fill_count(to, limit / 4);
}

static settle *const by_role[OOS_ROLE_COUNT] = {[OOS_ROLE_share] = settle_share,
                                                [OOS_ROLE_static_share] = settle_static,
                                                [OOS_ROLE_length] = settle_length,
                                                [OOS_ROLE_requests] = settle_requests,
                                                [OOS_ROLE_step] = settle_step,
                                                [OOS_ROLE_ranks] = settle_ranks,
                                                [OOS_ROLE_cache_type] = settle_cache_type,
                                                [OOS_ROLE_cache_bytes] = settle_cache_bytes,
                                                [OOS_ROLE_eager] = settle_eager,
                                                [OOS_ROLE_checkpoint] = settle_quantised,
                                                [OOS_ROLE_segments] = settle_segments,
                                                [OOS_ROLE_host_limit] = settle_limit,
                                                [OOS_ROLE_part] = settle_part,
                                                [OOS_ROLE_prompt_cache] = settle_prompts};

oos_settled oos_advice_settle(const oos_advisers *advisers, const oos_ladder *ladder,
                              const oos_advice *advice, const oos_incident *incident)
{
    oos_settled settled = {.fate = OOS_ADVICE_AS_IT_IS};
    settle *how = by_role[oos_advice_role(advisers, ladder, advice->change[0])];
    scene const c = {incident, advisers, ladder, advice->change[0]};
    if (how) settled.fate = how(&c, advice->change_count > 1 ? advice->change[1] : "", &settled);
    return settled;
}
