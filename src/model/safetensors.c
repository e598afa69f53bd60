/* Reading safetensors headers.
 *
 *     8 bytes  length of the header, little-endian
 *     header   {"__metadata__": {...}, "name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...}
 *     data     never read here
 *
 * Files and directories are left to safetensors_dir.c. A large model has 37,000 tensors and 5 MB of headers, read at
 * every start: base/scan goes through them once, where a tree of JSON values took twenty times as long (260 ms to 13). */
#include "model/model.h"
#include "base/error.h"
#include "base/scan.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    HEADER_MAX = 100 * 1000 * 1000, /* the limit of the safetensors library itself */
    FILES_MAX = 4096,
    RANK_MAX = 8
};

typedef struct span {
    uint64_t begin, end;
} span;

struct oos_tensor_builder {
    oos_arena *arena;
    oos_tensor *list;
    size_t count, capacity;
    uint64_t total_bytes, largest_file_bytes;
    span *spans; /* of the file being read */
    size_t span_capacity;
};

static void builder_release(void *thing)
{
    oos_tensor_builder *builder = thing;
    free(builder->list);
    free(builder->spans);
}

oos_tensor_builder *oos_tensor_builder_create(oos_arena *arena)
{
    oos_tensor_builder *builder = OOS_NEW(arena, oos_tensor_builder);
    if (!builder || !oos_arena_adopt(arena, builder_release, builder)) return NULL;
    builder->arena = arena;
    return builder;
}

oos_tensor_table oos_tensor_builder_table(const oos_tensor_builder *builder)
{
    return (oos_tensor_table){.list = builder->list,
                              .count = builder->count,
                              .total_bytes = builder->total_bytes,
                              .largest_file_bytes = builder->largest_file_bytes};
}

static oomsight_status nomem(oomsight_error *reterr)
{
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for tensors");
}

/* ---- one tensor ------------------------------------------------------------------------------------------------ */

/* Every type a header may name, with its size; ours are fewer. */
static const struct dtype_row {
    char word[8];
    uint8_t bits;
    uint8_t dtype;
} dtypes[] = {
    {"BF16", 16, OOS_DTYPE_BF16},   {"F16", 16, OOS_DTYPE_F16},     {"F32", 32, OOS_DTYPE_F32},
    {"F8_E4M3", 8, OOS_DTYPE_F8},   {"F8_E5M2", 8, OOS_DTYPE_F8},   {"F8_E8M0", 8, OOS_DTYPE_F8},
    {"I64", 64, OOS_DTYPE_I64},     {"I32", 32, OOS_DTYPE_I32},     {"I8", 8, OOS_DTYPE_I8},
    {"U8", 8, OOS_DTYPE_U8},        {"BOOL", 8, OOS_DTYPE_U8},      {"I16", 16, OOS_DTYPE_UNKNOWN},
    {"U16", 16, OOS_DTYPE_UNKNOWN}, {"U32", 32, OOS_DTYPE_UNKNOWN}, {"U64", 64, OOS_DTYPE_UNKNOWN},
    {"F64", 64, OOS_DTYPE_UNKNOWN}, {"C64", 64, OOS_DTYPE_UNKNOWN}, {"F4", 4, OOS_DTYPE_UNKNOWN},
};

static const struct dtype_row *dtype_find(oos_view word)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (word.len < sizeof dtypes[i].word && memcmp(dtypes[i].word, word.ptr, word.len) == 0 &&
            dtypes[i].word[word.len] == '\0')
            return &dtypes[i];
    /* "F8_E4M3FN" and what is yet to come: the size is then what the offsets say */
    return NULL;
}

typedef struct draft {
    oos_tensor tensor;
    const struct dtype_row *dtype;
    span data;
    bool has_shape, has_data;
} draft;

static oomsight_status tensor_fail(const char *why, oos_view name, oomsight_error *reterr)
{
    return oos_fail(reterr, OOMSIGHT_MALFORMED, "tensor %.*s: %s", (int)(name.len < 120 ? name.len : 120),
                    name.ptr, why);
}

static oomsight_status shape_read(oos_scan *scan, oos_view name, draft *d, oomsight_error *reterr)
{
    if (!oos_scan_open(scan, '[')) return OOMSIGHT_OK; /* told once, by the caller */
    d->tensor.rank = 0;
    while (oos_scan_item(scan)) {
        if (d->tensor.rank == RANK_MAX) return tensor_fail("more than 8 dimensions", name, reterr);
        if (!oos_scan_u64(scan, &d->tensor.shape[d->tensor.rank]))
            return tensor_fail("a dimension is no size", name, reterr);
        d->tensor.rank++;
    }
    d->has_shape = true;
    return OOMSIGHT_OK;
}

static oomsight_status offsets_read(oos_scan *scan, oos_view name, draft *d, oomsight_error *reterr)
{
    bool const pair = oos_scan_open(scan, '[') && oos_scan_item(scan) && oos_scan_u64(scan, &d->data.begin) &&
                      oos_scan_item(scan) && oos_scan_u64(scan, &d->data.end) && !oos_scan_item(scan) &&
                      !scan->failed;
    if (!pair || d->data.end < d->data.begin || d->data.end > INT64_MAX)
        return tensor_fail("data_offsets are not a begin and an end", name, reterr);
    d->has_data = true;
    return OOMSIGHT_OK;
}

/* The two ways in which a header says how large a tensor is must agree. */
static oomsight_status size_check(oos_view name, const draft *d, oomsight_error *reterr)
{
    uint64_t bits = d->dtype->bits;
    for (unsigned i = 0; i < d->tensor.rank; i++)
        if (__builtin_mul_overflow(bits, d->tensor.shape[i], &bits))
            return tensor_fail("its shape does not fit 64 bits", name, reterr);
    uint64_t const bytes = d->data.end - d->data.begin;
    if (bits % 8 == 0 && bits / 8 == bytes) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_MALFORMED,
                    "tensor %.*s: %" PRIu64 " bytes by its shape, %" PRIu64 " by its data_offsets",
                    (int)(name.len < 120 ? name.len : 120), name.ptr, oos_cdiv(bits, 8), bytes);
}

static oomsight_status tensor_read(oos_scan *scan, oos_view name, draft *d, oomsight_error *reterr)
{
    oos_view key, word;
    *d = (draft){0};
    if (!oos_scan_open(scan, '{')) return tensor_fail("not an object", name, reterr);
    while (oos_scan_key(scan, &key)) {
        if (oos_view_is(key, "dtype")) {
            if (oos_scan_string(scan, &word)) d->dtype = dtype_find(word);
        } else if (oos_view_is(key, "shape")) {
            OOS_TRY(shape_read(scan, name, d, reterr));
        } else if (oos_view_is(key, "data_offsets")) {
            OOS_TRY(offsets_read(scan, name, d, reterr));
        } else {
            oos_scan_skip(scan, NULL);
        }
    }
    if (scan->failed) return tensor_fail("not JSON", name, reterr);
    if (!d->has_shape || !d->has_data)
        return tensor_fail("needs dtype, shape and data_offsets", name, reterr);
    if (d->dtype) OOS_TRY(size_check(name, d, reterr));
    d->tensor.dtype = d->dtype ? (oos_dtype)d->dtype->dtype : OOS_DTYPE_UNKNOWN;
    d->tensor.bytes = d->data.end - d->data.begin;
    return OOMSIGHT_OK;
}

/* Names are printed and compared: they must be text. */
static bool name_is_text(oos_view name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char const c = (unsigned char)name.ptr[i];
        if (c < 0x20) return false;
        if (c < 0x80) continue;
        unsigned const more = c >= 0xc2 && c < 0xe0   ? 1
                              : (c & 0xf0) == 0xe0    ? 2
                              : c >= 0xf0 && c < 0xf5 ? 3
                                                      : 0;
        if (more == 0 || name.len - i <= more) return false;
        for (unsigned k = 1; k <= more; k++)
            if (((unsigned char)name.ptr[i + k] & 0xc0) != 0x80) return false;
        i += more;
    }
    return true;
}

/* ---- one header ------------------------------------------------------------------------------------------------ */

static bool grow(void **list, size_t *capacity, size_t wanted, size_t item_bytes)
{
    if (wanted <= *capacity) return true;
    size_t next = *capacity ? *capacity : 256;
    while (next < wanted) {
        if (next > SIZE_MAX / 4 / item_bytes) return false;
        next *= 2;
    }
    void *larger = realloc(*list, next * item_bytes);
    if (!larger) return false;
    *list = larger;
    *capacity = next;
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Two tensors over the same bytes would be counted twice. */
static bool spans_overlap(span *spans, size_t count)
{
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++) sorted = spans[i - 1].begin <= spans[i].begin;
    if (!sorted) qsort(spans, count, sizeof *spans, by_begin);
    for (size_t i = 1; i < count; i++)
        if (spans[i].begin < spans[i - 1].end) return true;
    return false;
}

static oomsight_status header_read(oos_tensor_builder *b, oos_view header, size_t *ret_count,
                                   uint64_t *ret_bytes, oomsight_error *reterr)
{
    oos_scan scan = oos_scan_begin(header);
    size_t count = 0;
    uint64_t bytes = 0;
    oos_view name;
    draft d;
    if (!oos_scan_open(&scan, '{'))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the header is not a JSON object");
    while (oos_scan_key(&scan, &name)) {
        if (oos_view_is(name, "__metadata__")) {
            oos_scan_skip(&scan, NULL);
            continue;
        }
        OOS_TRY(tensor_read(&scan, name, &d, reterr));
        if (!name_is_text(name))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "the name of a tensor is not text");
        d.tensor.name = oos_scan_text(b->arena, name);
        if (!d.tensor.name || !grow((void **)&b->list, &b->capacity, b->count + count + 1, sizeof *b->list) ||
            !grow((void **)&b->spans, &b->span_capacity, count + 1, sizeof *b->spans))
            return nomem(reterr);
        b->list[b->count + count] = d.tensor;
        b->spans[count++] = d.data;
        bytes = oos_add(bytes, d.tensor.bytes);
    }
    if (!oos_scan_done(&scan))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the header is not JSON at byte %zu",
                        (size_t)(scan.at - scan.start));
    if (spans_overlap(b->spans, count))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "two tensors lie over each other");
    *ret_count = count;
    *ret_bytes = bytes;
    return OOMSIGHT_OK;
}

oomsight_status oos_tensor_builder_add(oos_tensor_builder *builder, oos_view header, uint64_t file_bytes,
                                       oomsight_error *reterr)
{
    size_t count = 0;
    uint64_t bytes = 0;
    OOS_TRY(header_read(builder, header, &count, &bytes, reterr));
    builder->count += count;
    builder->total_bytes = oos_add(builder->total_bytes, bytes);
    if (file_bytes > builder->largest_file_bytes) builder->largest_file_bytes = file_bytes;
    return OOMSIGHT_OK;
}

oomsight_status oos_safetensors_length(const char first[8], uint64_t *ret_header_bytes,
                                       oomsight_error *reterr)
{
    uint64_t const header_bytes = oos_load_le64(first);
    if (header_bytes < 2 || header_bytes > HEADER_MAX)
        return oos_fail(reterr, OOMSIGHT_MALFORMED,
                        "a header of %" PRIu64 " bytes: between 2 and %d are possible", header_bytes,
                        HEADER_MAX);
    *ret_header_bytes = header_bytes;
    return OOMSIGHT_OK;
}

oomsight_status oos_safetensors_read(oos_arena *arena, oos_view file, oos_tensor_table *ret_table,
                                     oomsight_error *reterr)
{
    uint64_t header_bytes = 0;
    if (file.len < 8)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "%zu bytes is too short for a header", file.len);
    OOS_TRY(oos_safetensors_length(file.ptr, &header_bytes, reterr));
    if (header_bytes > file.len - 8)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "header of %" PRIu64 " bytes in a file of %zu",
                        header_bytes, file.len);
    oos_tensor_builder *builder = oos_tensor_builder_create(arena);
    if (!builder) return nomem(reterr);
    OOS_TRY(oos_tensor_builder_add(builder, oos_view_slice(file, 8, (size_t)header_bytes), 0, reterr));
    *ret_table = oos_tensor_builder_table(builder);
    return OOMSIGHT_OK;
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

/* Stays in the directory: not absolute, no step up. */
static bool name_stays(oos_view name)
{
    if (name.len == 0 || name.ptr[0] == '/') return false;
    for (size_t i = 0; i + 1 < name.len; i++)
        if (name.ptr[i] == '.' && name.ptr[i + 1] == '.' && (i == 0 || name.ptr[i - 1] == '/') &&
            (i + 2 == name.len || name.ptr[i + 2] == '/'))
            return false;
    return true;
}

enum { SLOTS = 4 * FILES_MAX };

typedef struct file_set {
    oos_view list[FILES_MAX];
    size_t count;
    size_t last;           /* tensors of a file mostly stand together */
    uint16_t slots[SLOTS]; /* 1 + index into list, found by hash; 0: empty */
} file_set;

static bool file_add(file_set *files, oos_view name)
{
    if (files->count && oos_view_equal(files->list[files->last], name)) return true;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < name.len; i++) hash = (hash ^ (unsigned char)name.ptr[i]) * 16777619u;
    uint32_t at = hash % SLOTS;
    for (; files->slots[at]; at = (at + 1) % SLOTS) {
        size_t const index = files->slots[at] - 1u;
        if (!oos_view_equal(files->list[index], name)) continue;
        files->last = index;
        return true;
    }
    if (files->count == FILES_MAX) return false;
    files->last = files->count;
    files->list[files->count++] = name;
    files->slots[at] = (uint16_t)files->count;
    return true;
}

static oomsight_status weight_map_read(oos_scan *scan, file_set *files, oomsight_error *reterr)
{
    oos_view tensor, file;
    if (!oos_scan_open(scan, '{')) return oos_fail(reterr, OOMSIGHT_MALFORMED, "weight_map is not an object");
    while (oos_scan_key(scan, &tensor)) {
        if (!oos_scan_string(scan, &file)) break;
        if (!file_add(files, file))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "weight_map names more than %d files", FILES_MAX);
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_safetensors_index_read(oos_arena *arena, oos_view index, const char *const **ret_files,
                                           size_t *ret_count, oomsight_error *reterr)
{
    oos_scan scan = oos_scan_begin(index);
    oos_view key;
    bool found = false;
    file_set *files = OOS_NEW(arena, file_set);
    if (!files) return nomem(reterr);
    if (oos_scan_open(&scan, '{'))
        while (oos_scan_key(&scan, &key)) {
            if (oos_view_is(key, "weight_map")) {
                OOS_TRY(weight_map_read(&scan, files, reterr));
                found = true;
            } else {
                oos_scan_skip(&scan, NULL);
            }
        }
    if (!oos_scan_done(&scan))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "not JSON at byte %zu", (size_t)(scan.at - scan.start));
    if (!found) return oos_fail(reterr, OOMSIGHT_MALFORMED, "an index without weight_map");
    const char **names = OOS_NEW_ARRAY(arena, const char *, files->count);
    if (!names) return nomem(reterr);
    for (size_t i = 0; i < files->count; i++) {
        names[i] = oos_scan_text(arena, files->list[i]);
        if (!names[i]) return nomem(reterr);
        /* as it will be opened: an escape may stand for a dot or a slash */
        if (!name_stays(oos_view_of(names[i])))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "weight_map names a file outside the model: %.120s",
                            names[i]);
    }
    *ret_files = names;
    *ret_count = files->count;
    return OOMSIGHT_OK;
}
