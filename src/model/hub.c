/* What to ask the hub for, and what its answers mean. The transfers are hub_fetch's. */
#include "model/model.h"
#include "base/ascii.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    CONFIG_MAX = 16 << 20,
    INDEX_MAX = 100 * 1000 * 1000,
    FIRST_BYTES = 128 << 10, /* a header and its length; larger ones are asked for again */
    TIMEOUT_S = 20,
    DEADLINE_TIMEOUTS = 3 /* the whole of a model may take so many of them */
};

typedef struct hub {
    oos_arena *arena;
    const oos_hub_id *id;
    const char *endpoint, *revision;
    oos_fetch_options options;
    bool withheld; /* there is a token, and the way to the hub is open to everybody */
    oomsight_error *reterr;
} hub;

static oomsight_status nomem(hub *h)
{
    return oos_fail(h->reterr, OOMSIGHT_NOMEM, "no memory for a download");
}

static bool on(const char *name)
{
    const char *value = getenv(name);
    return value && (strcmp(value, "1") == 0 || oos_same(value, "true") || oos_same(value, "yes") ||
                     oos_same(value, "on"));
}

bool oos_hub_offline(void)
{
    return on("HF_HUB_OFFLINE") || on("TRANSFORMERS_OFFLINE");
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

static oomsight_status endpoint_read(hub *h)
{
    const char *given = getenv("HF_ENDPOINT");
    if (!given || !*given) given = "https://huggingface.co";
    if (strncmp(given, "https://", 8) != 0 && strncmp(given, "http://", 7) != 0)
        return oos_fail(h->reterr, OOMSIGHT_USAGE, "HF_ENDPOINT is not a web address: %.200s", given);
    oos_view endpoint = oos_view_of(given);
    while (endpoint.len && endpoint.ptr[endpoint.len - 1] == '/') endpoint.len--;
    h->endpoint = oos_arena_copy(h->arena, endpoint);
    return h->endpoint ? OOMSIGHT_OK : nomem(h);
}

bool oos_hub_is_here(const char *url)
{
    const char *start = strstr(url, "://");
    oos_view host = {start ? start + 3 : url, start ? strcspn(start + 3, "/?#") : 0};
    size_t port = host.len;
    while (port > 0 && oos_is_digit(host.ptr[port - 1])) port--;
    if (port > 0 && host.ptr[port - 1] == ':') host.len = port - 1;
    unsigned dots = 0;
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] != '.' && !oos_is_digit(host.ptr[i])) dots = 4; /* no number: `127.evil` */
        dots += host.ptr[i] == '.';
    }
    return oos_view_is(host, "localhost") || oos_view_is(host, "[::1]") ||
           (dots == 3 && oos_view_starts(host, "127.") && host.ptr[host.len - 1] != '.');
}

/* Over http:// everybody on the way reads the token; on this machine there is nobody on the way. */
static bool is_open(const char *endpoint)
{
    return strncmp(endpoint, "http://", 7) == 0 && !oos_hub_is_here(endpoint);
}

/* One word without anything that could end a header line. */
static oomsight_status token_read(hub *h)
{
    const char *given = getenv("HF_TOKEN");
    if (!given) return OOMSIGHT_OK;
    oos_view token = oos_view_of(given);
    while (token.len && strchr(" \t\r\n", token.ptr[token.len - 1])) token.len--;
    while (token.len && strchr(" \t\r\n", *token.ptr)) token = oos_view_slice(token, 1, token.len);
    for (size_t i = 0; i < token.len; i++)
        if (token.ptr[i] <= ' ' || token.ptr[i] > '~')
            return oos_fail(h->reterr, OOMSIGHT_USAGE, "HF_TOKEN is not a token");
    if (token.len == 0) return OOMSIGHT_OK;
    h->withheld = is_open(h->endpoint) && !on("OOMSIGHT_INSECURE");
    if (h->withheld) return OOMSIGHT_OK;
    h->options.token = oos_arena_copy(h->arena, token);
    return h->options.token ? OOMSIGHT_OK : nomem(h);
}

static long timeout_read(void)
{
    const char *given = getenv("HF_HUB_DOWNLOAD_TIMEOUT");
    long const seconds = given ? strtol(given, NULL, 10) : 0;
    return seconds > 0 && seconds < 3600 ? seconds : TIMEOUT_S;
}

/* refs/pr/1 -> refs%2Fpr%2F1; the other characters of a revision are harmless */
static const char *escaped(oos_arena *arena, const char *revision)
{
    char *text = oos_arena_take(arena, 3 * strlen(revision) + 1), *out = text;
    if (!text) return NULL;
    for (; *revision; revision++) {
        if (*revision == '/' || *revision == '+') {
            memcpy(out, *revision == '/' ? "%2F" : "%2B", 3);
            out += 3;
        } else {
            *out++ = *revision;
        }
    }
    *out = '\0';
    return text;
}

/* A file name of an index may have any character: those that an address gives a meaning are escaped. */
static const char *address(hub *h, const char *file)
{
    static const char hex[] = "0123456789ABCDEF";
    char *name = oos_arena_take(h->arena, 3 * strlen(file) + 1), *out = name;
    if (!name) return NULL;
    for (; *file; file++) {
        unsigned char const c = (unsigned char)*file;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-._~/", c)) {
            *out++ = *file;
        } else {
            *out++ = '%';
            *out++ = hex[c >> 4];
            *out++ = hex[c & 15];
        }
    }
    *out = '\0';
    return oos_arena_format(h->arena, "%s/%s/resolve/%s/%s", h->endpoint, h->id->name, h->revision, name);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

static oomsight_status refused(hub *h, const oos_fetch *fetch)
{
    const char *name = h->id->name;
    switch (fetch->http) {
    case 401:
    case 403:
        if (h->options.token)
            return oos_fail(h->reterr, OOMSIGHT_IO,
                            "the Hugging Face Hub does not give %s to this HF_TOKEN (%ld): request access on "
                            "the model's page, or check the name",
                            name, fetch->http);
        if (h->withheld)
            return oos_fail(h->reterr, OOMSIGHT_IO,
                            "the Hugging Face Hub does not give %s without a token (%ld), and HF_TOKEN was "
                            "not sent: %.100s is not https:// (--insecure sends it anyway)",
                            name, fetch->http, h->endpoint);
        return oos_fail(h->reterr, OOMSIGHT_IO,
                        "the Hugging Face Hub does not give %s without a token (%ld): it is gated or private "
                        "and needs HF_TOKEN, or does not exist",
                        name, fetch->http);
    case 404:
        return oos_fail(h->reterr, OOMSIGHT_NOT_FOUND,
                        "the Hugging Face Hub at %s has no %s at revision %s with a config.json", h->endpoint,
                        name, h->id->revision);
    case 429:
        return oos_fail(h->reterr, OOMSIGHT_NETWORK,
                        "the Hugging Face Hub limits the rate of requests (429); try again later: %s",
                        fetch->url);
    default:
        return oos_fail(h->reterr, OOMSIGHT_NETWORK, "the Hugging Face Hub answered %ld to %s", fetch->http,
                        fetch->url);
    }
}

static bool answered(const oos_fetch *fetch)
{
    return fetch->http == 200 || fetch->http == 206;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* config.json, hf_quant_config.json and the index, at once. */
static oomsight_status texts_fetch(hub *h, oos_fetch texts[3])
{
    texts[0] = (oos_fetch){.url = address(h, "config.json"), .limit_bytes = CONFIG_MAX};
    texts[1] = (oos_fetch){.url = address(h, "hf_quant_config.json"), .limit_bytes = CONFIG_MAX};
    texts[2] = (oos_fetch){.url = address(h, "model.safetensors.index.json"), .limit_bytes = INDEX_MAX};
    for (size_t i = 0; i < 3; i++)
        if (!texts[i].url) return nomem(h);
    OOS_TRY(oos_fetch_all(h->arena, &h->options, texts, 3, h->reterr));
    if (!answered(&texts[0])) return refused(h, &texts[0]);
    for (size_t i = 1; i < 3; i++)
        if (!answered(&texts[i]) && texts[i].http != 404) return refused(h, &texts[i]);
    return OOMSIGHT_OK;
}

/* Of a model that takes images: how large they may be. */
static oomsight_status processors_fetch(hub *h, oos_model *model)
{
    oos_fetch files[OOS_PROCESSOR_FILES];
    const char *urls[OOS_PROCESSOR_FILES];
    oos_view texts[OOS_PROCESSOR_FILES] = {{NULL, 0}};
    for (size_t i = 0; i < OOS_PROCESSOR_FILES; i++) {
        urls[i] = address(h, oos_processor_files[i]);
        files[i] = (oos_fetch){.url = urls[i], .limit_bytes = CONFIG_MAX};
        if (!urls[i]) return nomem(h);
    }
    OOS_TRY(oos_fetch_all(h->arena, &h->options, files, OOS_PROCESSOR_FILES, h->reterr));
    for (size_t i = 0; i < OOS_PROCESSOR_FILES; i++) {
        if (answered(&files[i]))
            texts[i] = files[i].bytes;
        else if (files[i].http != 404)
            return refused(h, &files[i]);
    }
    return oos_processors_read(h->arena, urls, texts, model, h->reterr);
}

/* The header in an answer. *ret_wanted: so many bytes have to be asked for instead; 0: it is all there. */
static oomsight_status header_find(hub *h, const oos_fetch *fetch, oos_view *ret_header, size_t *ret_wanted)
{
    uint64_t header_bytes = 0;
    *ret_wanted = 0;
    if (fetch->bytes.len < 8)
        return oos_fail(h->reterr, OOMSIGHT_MALFORMED, "%.300s: %zu bytes is too short for a header",
                        fetch->url, fetch->bytes.len);
    oomsight_status const status = oos_safetensors_length(fetch->bytes.ptr, &header_bytes, h->reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(h->reterr, status, fetch->url);
    if (header_bytes + 8 > fetch->first_bytes)
        *ret_wanted = (size_t)header_bytes + 8;
    else if (header_bytes + 8 > fetch->bytes.len)
        return oos_fail(h->reterr, OOMSIGHT_MALFORMED,
                        "%.300s: a header of %" PRIu64 " bytes, of which %zu came", fetch->url, header_bytes,
                        fetch->bytes.len - 8);
    else
        *ret_header = oos_view_slice(fetch->bytes, 8, (size_t)header_bytes);
    return OOMSIGHT_OK;
}

/* Headers that did not come with the first bytes are asked for again, all at once. */
static oomsight_status headers_complete(hub *h, oos_fetch *files, size_t count)
{
    oos_fetch *again = OOS_NEW_ARRAY(h->arena, oos_fetch, count);
    size_t again_count = 0;
    if (!again) return nomem(h);
    for (size_t i = 0; i < count; i++) {
        oos_view header;
        size_t wanted;
        OOS_TRY(header_find(h, &files[i], &header, &wanted));
        if (wanted) again[again_count++] = (oos_fetch){.url = files[i].url, .first_bytes = wanted};
    }
    if (again_count == 0) return OOMSIGHT_OK;
    OOS_TRY(oos_fetch_all(h->arena, &h->options, again, again_count, h->reterr));
    again_count = 0;
    for (size_t i = 0; i < count; i++) {
        oos_view header;
        size_t wanted;
        OOS_TRY(header_find(h, &files[i], &header, &wanted));
        if (!wanted) continue;
        uint64_t const total_bytes = files[i].total_bytes;
        files[i] = again[again_count++];
        if (!answered(&files[i])) return refused(h, &files[i]);
        if (!files[i].total_bytes) files[i].total_bytes = total_bytes;
    }
    return OOMSIGHT_OK;
}

static oomsight_status tensors_fetch(hub *h, const char *const *names, size_t count,
                                     oos_tensor_table *ret_table)
{
    oos_fetch *files = OOS_NEW_ARRAY(h->arena, oos_fetch, count);
    oos_tensor_builder *builder = oos_tensor_builder_create(h->arena);
    if (!files || !builder) return nomem(h);
    for (size_t i = 0; i < count; i++) {
        files[i] = (oos_fetch){.url = address(h, names[i]), .first_bytes = FIRST_BYTES};
        if (!files[i].url) return nomem(h);
    }
    OOS_TRY(oos_fetch_all(h->arena, &h->options, files, count, h->reterr));
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        missing += files[i].http == 404;
        if (!answered(&files[i]) && files[i].http != 404) return refused(h, &files[i]);
    }
    if (missing) {
        *ret_table = (oos_tensor_table){
            .note = oos_arena_format(h->arena,
                                     "%zu of %zu weight files in safetensors form are not on the Hugging "
                                     "Face Hub: weights are computed from the config",
                                     missing, count)};
        return OOMSIGHT_OK;
    }
    OOS_TRY(headers_complete(h, files, count));
    for (size_t i = 0; i < count; i++) {
        oos_view header = {0};
        size_t wanted;
        OOS_TRY(header_find(h, &files[i], &header, &wanted));
        if (wanted)
            return oos_fail(h->reterr, OOMSIGHT_MALFORMED, "%.300s: its header changed while it was read",
                            files[i].url);
        oomsight_status const status =
            oos_tensor_builder_add(builder, header, files[i].total_bytes, h->reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(h->reterr, status, files[i].url);
    }
    *ret_table = oos_tensor_builder_table(builder);
    return OOMSIGHT_OK;
}

oomsight_status oos_hub_open(oos_arena *arena, const char *data_dir, const oos_hub_id *id,
                             const char *overrides, oos_model *ret_model, oomsight_error *reterr)
{
    hub h = {.arena = arena, .id = id, .reterr = reterr};
    OOS_TRY(endpoint_read(&h));
    OOS_TRY(token_read(&h));
    h.revision = escaped(arena, id->revision);
    if (!h.revision) return nomem(&h);
    h.options.endpoint = h.endpoint;
    h.options.timeout_s = timeout_read();
    h.options.deadline_ms = oos_clock_ms() + DEADLINE_TIMEOUTS * 1000 * h.options.timeout_s;

    oos_fetch texts[3];
    OOS_TRY(texts_fetch(&h, texts));
    oos_model model;
    oos_view const quant = answered(&texts[1]) ? texts[1].bytes : (oos_view){NULL, 0};
    oos_view config;
    oomsight_status status = oos_config_override(arena, texts[0].bytes, overrides, &config, reterr);
    if (status == OOMSIGHT_OK) status = oos_model_read(arena, data_dir, config, quant, &model, reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, texts[0].url);
    model.path = oos_arena_copy(arena, oos_view_of(id->name));
    if (model.vision.present) OOS_TRY(processors_fetch(&h, &model));

    static const char *const single[] = {"model.safetensors"};
    const char *const *names = single;
    size_t count = 1;
    if (answered(&texts[2])) {
        status = oos_safetensors_index_read(arena, texts[2].bytes, &names, &count, reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, texts[2].url);
    }
    oos_tensor_table *table = OOS_NEW(arena, oos_tensor_table);
    if (!table || !model.path) return nomem(&h);
    OOS_TRY(tensors_fetch(&h, names, count, table));
    OOS_TRY(oos_tensors_attach(arena, table, &model, reterr));
    *ret_model = model;
    return OOMSIGHT_OK;
}
