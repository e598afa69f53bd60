/* The list of GPUs, by class, and the order in which they are tried. */
#include "plan/plan.h"
#include <limits.h>

/* What people rent and buy, by class and by memory of one card: a choice of ours, without prices. A device that is not here can still
 * be asked for by its name. */
static const struct {
    oos_gpu_class kind;
    const char *name;
} common_gpus[] = {{OOS_GPU_DATACENTRE, "T4"},
                   {OOS_GPU_CONSUMER, "RTX 5070 Ti"},
                   {OOS_GPU_DATACENTRE, "L4"},
                   {OOS_GPU_CONSUMER, "RTX 3090"},
                   {OOS_GPU_CONSUMER, "RTX 4090"},
                   {OOS_GPU_CONSUMER, "RTX 5090"},
                   {OOS_GPU_DATACENTRE, "A100 40GB"},
                   {OOS_GPU_DATACENTRE, "L40S"},
                   {OOS_GPU_DATACENTRE, "H100"},
                   {OOS_GPU_DATACENTRE, "A100 80GB"},
                   {OOS_GPU_DATACENTRE, "H200"},
                   {OOS_GPU_DATACENTRE, "B200"},
                   {OOS_GPU_DATACENTRE, "B300"},
                   {OOS_GPU_WORKSTATION, "RTX A6000"},
                   {OOS_GPU_WORKSTATION, "RTX 6000 Ada"},
                   {OOS_GPU_WORKSTATION, "RTX PRO 6000"},
                   {OOS_GPU_LAPTOP, "4090-laptop"},
                   {OOS_GPU_LAPTOP, "5090-laptop"},
                   {OOS_GPU_EMBEDDED, "agx-orin-64gb"},
                   {OOS_GPU_EMBEDDED, "thor"},
                   {OOS_GPU_EMBEDDED, "gb10"}};
enum { COMMON_GPUS = sizeof common_gpus / sizeof *common_gpus };

static const oos_gpu *common_gpu(const oos_gpus *gpus, size_t at)
{
    uint64_t ignored;
    return oos_gpus_find(gpus, oos_view_of(common_gpus[at].name), &ignored);
}

const char *oos_elsewhere_name(const oos_gpus *gpus, const oos_gpu *gpu)
{
    uint64_t ignored;
    const oos_gpu *named = oos_gpus_find(gpus, oos_view_of(gpu->name), &ignored);
    bool const plain = named == gpu && gpu->kind != OOS_GPU_EMBEDDED; /* most are called Orin */
    return plain || !gpu->alias_count ? gpu->name : gpu->aliases[0];
}

/* The known device that is asked about; those of one name differ by their memory. */
static const oos_gpu *own_gpu(const oos_elsewhere *e)
{
    const oos_device_facts *device = &e->plan->device;
    const oos_gpu *best = NULL;
    for (size_t i = 0; device->name && i < e->gpus->count; i++) {
        const oos_gpu *gpu = &e->gpus->list[i];
        if (gpu->slice || strcmp(gpu->name, device->name) != 0) continue;
        if (!best || gpu->total_bytes == device->total_bytes) best = gpu;
    }
    return best;
}

/* How many there are in a machine at most: four cards of a desktop, eight of a server, and no two of what is one computer. Two servers
 * are one pipeline. */
static uint64_t most_of(const oos_gpu *gpu)
{
    if (gpu->memory == OOS_MEMORY_UNIFIED || gpu->kind == OOS_GPU_LAPTOP || gpu->slice) return 1;
    return gpu->kind == OOS_GPU_CONSUMER ? 4 : gpu->kind == OOS_GPU_DATACENTRE ? 16 : 8;
}

static bool add_if_it_starts(const oos_elsewhere *e, const oos_gpu *gpu, uint64_t count, oos_needs *needs)
{
    if (needs->gpu_count == OOS_NEED_GPUS_MAX ||
        !e->starts(e->of, gpu, count, true, &needs->gpus[needs->gpu_count]))
        return false;
    needs->gpu_count++;
    oos_assert(needs->gpu_count <= OOS_NEED_GPUS_MAX);
    return true;
}

/* More of the device that is asked about. */
static void find_more(const oos_elsewhere *e, const oos_gpu *own, oos_needs *needs)
{
    for (uint64_t count = oos_max(2, e->ranks * 2); own && count <= most_of(own); count *= 2)
        if (add_if_it_starts(e, own, count, needs)) return;
}

/* A slice that is asked about: the next larger one of the same device (they follow it in the list), and the whole device. */
static void find_larger_slices(const oos_elsewhere *e, oos_needs *needs)
{
    const oos_device_facts *device = &e->plan->device;
    const oos_gpu *whole = NULL, *end = e->gpus->list + e->gpus->count;
    for (const oos_gpu *gpu = e->gpus->list; gpu < end; gpu++) {
        if (!gpu->slice) whole = gpu;
        if (!gpu->slice || !device->name || strcmp(gpu->name, device->name) != 0) continue;
        for (gpu = whole + 1; gpu < end && gpu->slice; gpu++)
            if (gpu->total_bytes > device->total_bytes && add_if_it_starts(e, gpu, 1, needs)) break;
        (void)add_if_it_starts(e, whole, 1, needs);
        return;
    }
}

typedef struct candidate {
    const oos_gpu *gpu;
    uint64_t count;
    bool done;
} candidate;

/* One larger card before many small ones; of as many, the less memory. */
static bool is_smaller(const candidate *a, const candidate *b)
{
    return a->count != b->count ? a->count < b->count : a->gpu->total_bytes < b->gpu->total_bytes;
}

/* The smallest of some classes, two of each number of cards; of what is one computer all. */
static void find_others(const oos_elsewhere *e, const oos_gpu *own, unsigned kinds, oos_needs *needs)
{
    static const uint64_t counts[] = {1, 2, 4, 8, 16};
    enum { COUNTS = sizeof counts / sizeof *counts, OF_A_NUMBER = 2 };
    uint64_t const held = oos_mul(e->plan->sizes.weights.loaded_bytes, e->ranks);
    candidate list[COMMON_GPUS * COUNTS];
    size_t count = 0;
    for (size_t i = 0; i < COMMON_GPUS; i++) {
        const oos_gpu *gpu = kinds & 1U << common_gpus[i].kind ? common_gpu(e->gpus, i) : NULL;
        for (size_t k = 0; gpu && gpu != own && k < COUNTS && counts[k] <= most_of(gpu); k++)
            if (gpu->total_bytes / 100 * 97 * counts[k] > held)
                list[count++] = (candidate){gpu, counts[k], false};
    }
    for (size_t tried = 0; tried < count && needs->gpu_count < OOS_NEED_GPUS_MAX; tried++) {
        size_t best = count, named = 0;
        for (size_t i = 0; i < count; i++)
            if (!list[i].done && (best == count || is_smaller(&list[i], &list[best]))) best = i;
        if (best == count) return;
        list[best].done = true;
        for (size_t i = 0; i < needs->gpu_count; i++) named += needs->gpus[i].count == list[best].count;
        bool const enough = named >= OF_A_NUMBER && most_of(list[best].gpu) > 1;
        if (!enough && !add_if_it_starts(e, list[best].gpu, list[best].count, needs)) continue;
        for (size_t i = 0; i < count; i++) /* more of the same need not be named */
            if (list[i].gpu == list[best].gpu) list[i].done = true;
    }
}

/* Others of its class; who has a card of a desktop can have one of a workstation. */
void oos_elsewhere_needs(const oos_elsewhere *e, oos_needs *needs)
{
    const oos_gpu *own = own_gpu(e);
    find_more(e, own, needs);
    if (!own) find_larger_slices(e, needs);
    if (!own && needs->gpu_count) return;
    unsigned const datacentre = 1U << OOS_GPU_DATACENTRE;
    unsigned const desktop = 1U << OOS_GPU_CONSUMER | 1U << OOS_GPU_WORKSTATION;
    find_others(e, own, !own ? UINT_MAX : own->kind == OOS_GPU_CONSUMER ? desktop : 1U << own->kind, needs);
    if (needs->gpu_count < 2 && own && own->kind != OOS_GPU_DATACENTRE)
        find_others(e, own, datacentre, needs);
}

/* ---- every GPU ---- */

static size_t rank_of(const oos_gpus *gpus, const char *name)
{
    for (size_t i = 0; i < COMMON_GPUS; i++) {
        const oos_gpu *gpu = common_gpu(gpus, i);
        if (gpu && strcmp(gpu->name, name) == 0) return i;
    }
    return COMMON_GPUS;
}

/* Less memory in all, then fewer cards, then fewer flags, then what people have. */
static bool goes_before(const oos_gpus *gpus, const oos_need_gpu *a, const oos_need_gpu *b)
{
    uint64_t const a_all = a->memory_bytes / OOS_GIB * a->count, b_all = b->memory_bytes / OOS_GIB * b->count;
    if (a_all != b_all) return a_all < b_all;
    if (a->count != b->count) return a->count < b->count;
    if (a->flag_count != b->flag_count) return a->flag_count < b->flag_count;
    return rank_of(gpus, a->gpu) < rank_of(gpus, b->gpu);
}

/* The fewest cards of one kind that are enough. How many there may be the command says, or nobody does. */
static bool try_counts(const oos_elsewhere *e, const oos_gpu *gpu, bool fixed, oos_need_gpu *ret_need)
{
    static const uint64_t counts[] = {1, 2, 4, 8};
    uint64_t const held = oos_mul(e->plan->sizes.weights.loaded_bytes, e->ranks);
    if (fixed) return (e->ranks == 1 || most_of(gpu) > 1) && e->starts(e->of, gpu, e->ranks, false, ret_need);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i] > 1 && most_of(gpu) == 1) return false;
        if (gpu->total_bytes / 100 * 97 * counts[i] > held &&
            e->starts(e->of, gpu, counts[i], false, ret_need))
            return true;
    }
    return false;
}

bool oos_elsewhere_choices(oos_arena *arena, const oos_elsewhere *e, bool fixed,
                           const oos_need_gpu **ret_list, size_t *ret_count)
{
    oos_need_gpu *list = OOS_NEW_ARRAY(arena, oos_need_gpu, e->gpus->count + 1);
    size_t count = 0;
    if (!list) return false;
    for (size_t i = 0; i < e->gpus->count; i++) {
        oos_need_gpu need;
        if (e->gpus->list[i].slice || !try_counts(e, &e->gpus->list[i], fixed, &need)) continue;
        size_t at = count++;
        for (; at > 0 && goes_before(e->gpus, &need, &list[at - 1]); at--) list[at] = list[at - 1];
        list[at] = need;
    }
    oos_assert(count <= e->gpus->count);
    *ret_list = list;
    *ret_count = count;
    return true;
}
