/* Modules make their parameters in the order in which they are written down: towers, embedding, layer by layer, head. The
 * caching allocator asks CUDA for segments: 2 MiB for tensors up to 1 MiB, 20 MiB for those below 10 MiB, whole 2 MiB for
 * larger ones (PyTorch c10/cuda, get_allocation_size). */
#include "sizes/sizes.h"

#include "base/check.h"

enum { RESTS_MOST = 64 };
static const uint64_t large_buffer = 20 * OOS_MIB; /* kLargeBuffer */

/* A piece of a segment. */
typedef struct piece {
    uint64_t bytes, whole; /* its own, and of the segment */
    uint64_t segment;      /* a number; 0: none */
} piece;

/* Free pieces of one pool; the smallest that is large enough is taken. */
typedef struct rests {
    piece list[RESTS_MOST];
    unsigned count;
} rests;

typedef struct walk {
    const oos_model *model;
    oos_cut cut;
    uint64_t room;            /* what the device has left */
    rests small, large;       /* of segments for tensors up to 1 MiB, and above */
    uint64_t taken, segments; /* bytes in blocks, and of all segments */
    uint64_t segment_count;
    uint64_t tried; /* the refused segment; 0: none yet */
} walk;

/* The smallest goes when there are too many. */
static void rest_put(rests *r, piece p)
{
    unsigned least = 0;
    if (r->count < RESTS_MOST) {
        r->list[r->count++] = p;
        return;
    }
    for (unsigned i = 1; i < r->count; i++)
        if (r->list[i].bytes < r->list[least].bytes) least = i;
    if (r->list[least].bytes < p.bytes) r->list[least] = p;
}

static piece rest_drop(rests *r, unsigned at)
{
    oos_assert(at < r->count);
    piece const p = r->list[at];
    r->list[at] = r->list[--r->count];
    return p;
}

/* Blocks from the split limit on are for tensors from it on, and have no more than 20 MiB too much (get_free_block). */
static bool rest_take(rests *r, uint64_t size, uint64_t limit, piece *ret_piece)
{
    unsigned best = RESTS_MOST;
    for (unsigned i = 0; i < r->count; i++)
        if (r->list[i].bytes >= size && (best == RESTS_MOST || r->list[i].bytes < r->list[best].bytes))
            best = i;
    if (best == RESTS_MOST) return false;
    uint64_t const has = r->list[best].bytes;
    if (limit && (size < limit ? has >= limit : has >= size + large_buffer)) return false;
    *ret_piece = rest_drop(r, best);
    return true;
}

static uint64_t segment_of(uint64_t size)
{
    if (size <= OOS_MIB) return 2 * OOS_MIB;
    return size < 10 * OOS_MIB ? large_buffer : oos_round_up(size, 2 * OOS_MIB);
}

static rests *pool_of(walk *w, uint64_t size)
{
    return size <= OOS_MIB ? &w->small : &w->large;
}

/* A block is split when enough of it is left: of the small pool a block, of the other more than 1 MiB (should_split). */
static piece tensor(walk *w, uint64_t bytes)
{
    uint64_t const size = oos_round_up(bytes, 512);
    rests *pool = pool_of(w, size);
    piece p = {0};
    if (!size || w->tried) return p;
    uint64_t const limit = pool == &w->large ? w->cut.split_limit : 0;
    if (!rest_take(pool, size, limit, &p)) {
        p.bytes = p.whole = segment_of(size);
        p.segment = ++w->segment_count;
        if (p.whole > w->room) {
            w->tried = p.whole;
            return (piece){0};
        }
        w->room -= p.whole;
        w->segments = oos_add(w->segments, p.whole);
    }
    oos_assert(size <= p.bytes && p.bytes <= p.whole);
    uint64_t const rest = p.bytes - size;
    bool const split = pool == &w->small ? rest >= 512 : rest > OOS_MIB && (!limit || size < limit);
    if (split) {
        rest_put(pool, (piece){rest, p.whole, p.segment});
        p.bytes = size;
    }
    w->taken = oos_add(w->taken, p.bytes);
    return p;
}

/* Back to its segment: free pieces of one become one, as if they were neighbours, which pieces of one table are. */
static void give_back(walk *w, piece p, uint64_t bytes)
{
    rests *pool = pool_of(w, oos_round_up(bytes, 512));
    if (!p.segment) return;
    w->taken = oos_sub(w->taken, p.bytes);
    for (unsigned i = 0; i < pool->count;)
        if (pool->list[i].segment == p.segment)
            p.bytes = oos_add(p.bytes, rest_drop(pool, i).bytes);
        else
            i++;
    oos_assert(p.bytes <= p.whole); /* its pieces are no more than the segment */
    rest_put(pool, p);
}

/* empty_cache(): segments of which nothing is used go back to the device. */
static void cache_empty(walk *w, rests *pool)
{
    for (unsigned i = 0; i < pool->count;)
        if (pool->list[i].bytes == pool->list[i].whole)
            w->segments = oos_sub(w->segments, rest_drop(pool, i).whole);
        else
            i++;
}

/* Positions x frequencies, their cosines and sines, which become one table. */
static piece table_make(walk *w, uint64_t bytes)
{
    piece parts[3];
    for (unsigned i = 0; i < 3; i++) parts[i] = tensor(w, bytes / 2);
    piece const table = tensor(w, bytes);
    for (unsigned i = 0; i < 3; i++) give_back(w, parts[i], bytes / 2);
    return table;
}

static void matrices(walk *w, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count && !w->tried; i++) {
        const oos_matrix *matrix = &w->model->matrices[i];
        uint64_t tensors[OOS_TENSORS_MAX];
        size_t const made = oos_tensors_created(
            &w->cut, matrix, &w->model->quants[w->cut.unquantised ? 0 : matrix->quant], tensors);
        for (size_t t = 0; t < made && !w->tried; t++) tensor(w, tensors[t]);
    }
}

/* True: the order is known. */
static bool walk_stage(const oos_shard *shard, uint64_t stage, const oos_weights_table *tables,
                       size_t table_count, piece *ret_made, walk *w)
{
    enum { ATTENTION_MATRICES = 2 }; /* the first of a layer: into and out of its attention, then the table */
    const oos_model *model = shard->model;
    if (!model->known || shard->ways.offload_gib > 0) return false;
    w->model = model;
    w->cut = oos_cut_of(shard);
    uint64_t first;
    uint64_t const count = oos_shard_layers(shard, stage, &first);
    if (shard->multimodal && (stage == 0 || !(model->vision_first_only || shard->ways.tower_first)))
        matrices(w, model->vision_matrices[0], model->vision_matrices[1]);
    if (oos_shard_begins(shard, stage)) matrices(w, model->first_stage[0], model->first_stage[1]);
    for (uint64_t i = first; i < first + count && !w->tried; i++) {
        const oos_layer *layer = &model->layers[i];
        uint64_t const before = i == first ? oos_min(layer->matrix_count, ATTENTION_MATRICES) : 0;
        matrices(w, layer->first_matrix, before);
        for (size_t t = 0; t < table_count && i == first && !w->tried; t++)
            ret_made[t] = table_make(w, tables[t].bytes);
        matrices(w, layer->first_matrix + before, layer->matrix_count - before);
    }
    matrices(w, model->every_stage[0], model->every_stage[1]);
    for (uint64_t i = model->last_stage[0]; i < model->last_stage[0] + (uint64_t)model->last_stage[1]; i++)
        if (oos_shard_ends(shard, stage, &model->matrices[i])) matrices(w, i, 1);
    return true;
}

uint64_t oos_weights_tried(const oos_shard *shard, uint64_t stage, uint64_t room_bytes)
{
    walk w = {.room = room_bytes};
    return walk_stage(shard, stage, NULL, 0, NULL, &w) ? w.tried : 0;
}

bool oos_weights_cached(const oos_shard *shard, uint64_t stage, const oos_weights_table *tables,
                        size_t table_count, uint64_t *ret_bytes)
{
    walk w = {.room = UINT64_MAX};
    piece made[OOS_WEIGHTS_TABLES] = {0};
    *ret_bytes = 0;
    if (table_count > OOS_WEIGHTS_TABLES || !walk_stage(shard, stage, tables, table_count, made, &w))
        return false;
    for (size_t i = 0; i < table_count; i++) {
        if (!tables[i].later_bytes) continue;
        tensor(&w, tables[i].later_bytes);
        give_back(&w, made[i], tables[i].bytes);
    }
    cache_empty(&w, &w.small);
    cache_empty(&w, &w.large);
    *ret_bytes = oos_sub(w.segments, w.taken);
    return true;
}

/* In fp32, then in its own type: what is given back is there for the layers. */
static void rotary_make(walk *w, const oos_rope *rope)
{
    uint64_t const cells = oos_mul(rope->max_position, rope->rotary_dim);
    piece const table = table_make(w, oos_mul(4, cells));
    if (rope->dtype == OOS_DTYPE_F32) return;
    tensor(w, oos_mul(cells, w->cut.dtype_bytes));
    give_back(w, table, oos_mul(4, cells));
}

/* A linear layer is made in the model's type, quantised into another tensor, and given back. */
static uint64_t quantised_while_made(walk *w, const oos_matrix *matrix, uint64_t *alone)
{
    oos_piece const p = oos_piece_of(&w->cut, matrix, &w->model->quants[0]);
    uint64_t const cells = oos_mul(p.count, oos_mul(p.rows, p.columns));
    uint64_t const whole = oos_mul(cells, w->cut.dtype_bytes);
    piece const made = tensor(w, whole);
    piece stays = tensor(w, cells);
    if (w->cut.capability < 89) { /* for Marlin: packed, and that repacked (prepare_fp8_layer_for_marlin) */
        piece const quantised = stays, packed = tensor(w, cells);
        stays = tensor(w, cells);
        give_back(w, packed, cells);
        give_back(w, quantised, cells);
    }
    give_back(w, made, whole);
    *alone = oos_add(*alone, oos_block_waste(&w->cut, cells));
    return oos_sub(stays.bytes, cells);
}

uint64_t oos_weights_online_waste(const oos_shard *shard, uint64_t stage, uint64_t *ret_alone)
{
    walk w = {.model = shard->model, .cut = oos_cut_of(shard), .room = UINT64_MAX};
    uint64_t first, waste = 0;
    uint64_t const count = oos_shard_layers(shard, stage, &first);
    *ret_alone = 0;
    if (!w.cut.online_fp8 || shard->ways.online_quantisation != 2 || w.cut.exact_blocks) return 0;
    for (size_t i = 0; i < w.model->rope_count; i++) rotary_make(&w, &w.model->rope[i]);
    for (uint64_t i = first; i < first + count; i++) {
        const oos_layer *layer = &w.model->layers[i];
        for (uint32_t m = 0; m < layer->matrix_count; m++) {
            const oos_matrix *matrix = &w.model->matrices[layer->first_matrix + m];
            if (oos_is_made_online(matrix, &w.model->quants[w.cut.unquantised ? 0 : matrix->quant]))
                waste = oos_add(waste, quantised_while_made(&w, matrix, ret_alone));
        }
    }
    return waste;
}
