/* Transfers with libcurl's multi interface. Redirects are followed here and not by libcurl, because a redirect to
 * another host (weights live on one) must not take the token along, whatever version of libcurl is found. */
#include "model/model.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/hash.h"
#include "oomsight_private.h"

#define CURL_DISABLE_TYPECHECK /* its macros would hide the functions we look up */
#include <curl/curl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { AT_ONCE = 8, REDIRECTS_MAX = 5, POLL_MS = 1000, SLOWEST = 1000 /* bytes a second */ };

/* ---- the library ----------------------------------------------------------------------------------------------- */

#define CALLS(X)                                                                                             \
    X(curl_global_init)                                                                                      \
    X(curl_easy_init)                                                                                        \
    X(curl_easy_cleanup)                                                                                     \
    X(curl_easy_setopt)                                                                                      \
    X(curl_easy_getinfo)                                                                                     \
    X(curl_easy_strerror)                                                                                    \
    X(curl_multi_init)                                                                                       \
    X(curl_multi_cleanup)                                                                                    \
    X(curl_multi_add_handle)                                                                                 \
    X(curl_multi_remove_handle)                                                                              \
    X(curl_multi_perform)                                                                                    \
    X(curl_multi_wait)                                                                                       \
    X(curl_multi_info_read)                                                                                  \
    X(curl_slist_append)                                                                                     \
    X(curl_slist_free_all)

static struct {
#define MEMBER(name) __typeof__(&(name)) name;
    CALLS(MEMBER)
#undef MEMBER
    bool ready;
} curl;
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_load(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    bool all = true;
#define LOOK_UP(name)                                                                                        \
    *(void **)&curl.name = dlsym(library, #name);                                                            \
    all = all && curl.name;
    CALLS(LOOK_UP)
#undef LOOK_UP
    curl.ready = all && curl.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

/* ---- a host that does not answer ------------------------------------------------------------------------------- */

enum { SILENT_MS = 60000, TELL_MS = 2000 };

/* The last one, and since when. A thousand files may name a model that nobody has. */
static _Atomic uint64_t silent_host;
static _Atomic int64_t silent_since_ms;

static uint64_t host_of(const char *endpoint)
{
    return oos_hash_add(0xcbf29ce484222325u, endpoint, strlen(endpoint));
}

static void silent_note(const char *endpoint)
{
    atomic_store(&silent_since_ms, oos_clock_ms());
    atomic_store(&silent_host, host_of(endpoint));
}

static bool was_silent(const char *endpoint)
{
    return atomic_load(&silent_host) == host_of(endpoint) &&
           oos_clock_ms() - atomic_load(&silent_since_ms) < SILENT_MS;
}

static _Atomic(oomsight_waiting *) waiting;

void oomsight_on_waiting(oomsight_waiting *call)
{
    atomic_store(&waiting, call);
}

/* Milliseconds of all that was fetched before: many short waits are a long one. */
static _Atomic int64_t waited_ms;

/* Once for a program. */
static void tell_waiting(const char *endpoint, int64_t started_ms)
{
    if (!atomic_load(&waiting) || atomic_load(&waited_ms) + oos_clock_ms() - started_ms < TELL_MS) return;
    oomsight_waiting *call = atomic_exchange(&waiting, NULL);
    if (call) call(endpoint);
}

/* ---- one transfer ---------------------------------------------------------------------------------------------- */

typedef struct transfer {
    oos_fetch *fetch;
    const oos_fetch_options *options;
    CURL *easy;
    struct curl_slist *headers;
    char *url; /* after redirects; malloc */
    char *bytes;
    size_t len, capacity;
    unsigned redirects;
    bool enough;   /* a server that ignores ranges sent more than we asked for */
    bool too_long; /* more than the limit */
    bool nomem;
    char why[CURL_ERROR_SIZE];
} transfer;

static size_t on_body(char *piece, size_t size, size_t count, void *user)
{
    transfer *t = user;
    size_t const len = size * count,
                 most = t->fetch->first_bytes ? t->fetch->first_bytes : t->fetch->limit_bytes;
    size_t const taken = len < most - t->len ? len : most - t->len;
    if (t->len + taken > t->capacity) {
        size_t capacity = t->capacity ? t->capacity : 16 << 10;
        while (capacity < t->len + taken) capacity *= 2;
        char *larger = realloc(t->bytes, capacity);
        if (!larger) {
            t->nomem = true;
            return 0;
        }
        t->bytes = larger;
        t->capacity = capacity;
    }
    if (taken) memcpy(t->bytes + t->len, piece, taken);
    t->len += taken;
    if (taken == len) return len;
    if (t->fetch->first_bytes)
        t->enough = true;
    else
        t->too_long = true;
    return 0; /* ends the transfer */
}

/* Content-Range: bytes 0-65535/4976698672 */
static size_t on_header(char *line, size_t size, size_t count, void *user)
{
    transfer *t = user;
    static const char name[] = "content-range:";
    size_t const len = size * count;
    if (len > sizeof name && len < 200 && oos_same_start(line, name, sizeof name - 1)) {
        const char *slash = memchr(line, '/', len);
        uint64_t total = 0;
        for (const char *at = slash ? slash + 1 : line + len; at < line + len && *at >= '0' && *at <= '9';
             at++)
            total = total < UINT64_MAX / 16 ? total * 10 + (uint64_t)(*at - '0') : total;
        t->fetch->total_bytes = total;
    }
    return len;
}

/* scheme://host:port of an address, without what follows */
static oos_view origin_of(const char *url)
{
    const char *host = strstr(url, "://");
    size_t const start = host ? (size_t)(host - url) + 3 : 0;
    return (oos_view){url, start + strcspn(url + start, "/?#")};
}

static bool transfer_arm(transfer *t)
{
    const oos_fetch_options *options = t->options;
    CURL *easy = t->easy;
    char range[32];
    t->len = 0;
    t->enough = t->too_long = false;
    t->why[0] = '\0';
    curl.curl_slist_free_all(t->headers);
    t->headers = NULL;
    /* the token, for the hub itself only */
    if (options->token && oos_view_equal(origin_of(t->url), origin_of(options->endpoint))) {
        char *line = malloc(strlen(options->token) + 32);
        if (!line) return false;
        sprintf(line, "Authorization: Bearer %s", options->token);
        t->headers = curl.curl_slist_append(NULL, line);
        free(line);
        if (!t->headers) return false;
    }
    if (t->fetch->first_bytes) snprintf(range, sizeof range, "0-%zu", t->fetch->first_bytes - 1);

    int bad = 0;
#define SET(option, value) bad |= curl.curl_easy_setopt(easy, option, value) != CURLE_OK
    SET(CURLOPT_URL, t->url);
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_RANGE, t->fetch->first_bytes ? range : NULL);
    SET(CURLOPT_ACCEPT_ENCODING, t->fetch->first_bytes ? NULL : ""); /* a range is of the bytes themselves */
    SET(CURLOPT_NOPROXY, oos_hub_is_here(t->url) ? "*" : NULL);      /* else what the environment says */
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_USERAGENT, "oomsight/" OOMSIGHT_VERSION);
    SET(CURLOPT_CONNECTTIMEOUT, options->timeout_s);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)SLOWEST);
    SET(CURLOPT_LOW_SPEED_TIME, options->timeout_s);
    SET(CURLOPT_ERRORBUFFER, t->why);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_PRIVATE, t);
#undef SET
    return !bad;
}

static bool web_address(const char *url)
{
    return strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;
}

/* Where a 3xx answer points to: 1 go there, 0 it is no redirect, -1 it may not be followed. */
static int transfer_redirect(transfer *t)
{
    char *next = NULL;
    if (t->fetch->http < 300 || t->fetch->http > 399) return 0;
    if (curl.curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &next) != CURLE_OK || !next) return 0;
    bool const weaker = strncmp(t->url, "https://", 8) == 0 && strncmp(next, "https://", 8) != 0;
    if (!web_address(next) || weaker || t->redirects++ == REDIRECTS_MAX) return -1;
    char *copy = strdup(next);
    if (!copy) return -1;
    free(t->url);
    t->url = copy;
    return 1;
}

static oomsight_status too_slow(const char *url, oomsight_error *reterr)
{
    return oos_fail(reterr, OOMSIGHT_NETWORK,
                    "%.300s sends too slowly (HF_HUB_DOWNLOAD_TIMEOUT=SECONDS waits longer)", url);
}

/* Neither a status nor a reason of our own: no address, no connection, a certificate that is not its own, silence. */
static bool is_unanswered(const transfer *t, CURLcode code)
{
    return !t->fetch->http && code != CURLE_OUT_OF_MEMORY && code != CURLE_URL_MALFORMAT &&
           code != CURLE_FAILED_INIT && oos_view_equal(origin_of(t->url), origin_of(t->options->endpoint));
}

static oomsight_status transfer_fail(const transfer *t, CURLcode code, oomsight_error *reterr)
{
    if (t->nomem) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a download");
    if (t->too_long)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "%.300s is longer than %zu bytes", t->fetch->url,
                        t->fetch->limit_bytes);
    if (code == CURLE_OPERATION_TIMEDOUT && t->len) return too_slow(t->options->endpoint, reterr);
    const char *why = t->why[0] ? t->why : curl.curl_easy_strerror(code);
    if (is_unanswered(t, code)) {
        silent_note(t->options->endpoint);
        return oos_fail(reterr, OOMSIGHT_NETWORK,
                        "%.150s cannot be reached (%.80s); a folder with its config.json needs no network",
                        t->options->endpoint, curl.curl_easy_strerror(code));
    }
    if (code == CURLE_PARTIAL_FILE)
        return oos_fail(reterr, OOMSIGHT_NETWORK, "%.300s: the body was cut short (%.120s)", t->fetch->url,
                        why);
    return oos_fail(reterr, OOMSIGHT_NETWORK, "%.300s: %.150s", t->fetch->url, why);
}

/* A transfer has ended. *ret_again: it goes on at another address. */
static oomsight_status transfer_end(transfer *t, CURLcode code, bool *ret_again, oomsight_error *reterr)
{
    *ret_again = false;
    t->fetch->http = 0;
    curl.curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->fetch->http);
    if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && t->enough)) return transfer_fail(t, code, reterr);
    int const redirect = transfer_redirect(t);
    if (redirect < 0)
        return oos_fail(reterr, OOMSIGHT_NETWORK, "%.300s: a redirect that is not followed", t->fetch->url);
    *ret_again = redirect > 0;
    return OOMSIGHT_OK;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

typedef struct session {
    oos_arena *arena;
    const oos_fetch_options *options;
    oos_fetch *list;
    size_t count, next; /* the next one to start */
    CURLM *multi;
    transfer transfers[AT_ONCE];
    size_t running;
} session;

static oomsight_status nomem(oomsight_error *reterr)
{
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a download");
}

static oomsight_status start(session *s, transfer *t, oomsight_error *reterr)
{
    oos_fetch *fetch = &s->list[s->next++];
    t->fetch = fetch;
    t->redirects = 0;
    free(t->url);
    t->url = strdup(fetch->url);
    if (!t->url || !transfer_arm(t)) return nomem(reterr);
    if (curl.curl_multi_add_handle(s->multi, t->easy) != CURLM_OK) return nomem(reterr);
    s->running++;
    return OOMSIGHT_OK;
}

/* The body goes to the arena, which frees it; the transfer begins anew with none. */
static oomsight_status keep(session *s, transfer *t, oomsight_error *reterr)
{
    if (t->bytes && !oos_arena_adopt(s->arena, free, t->bytes)) return nomem(reterr);
    t->fetch->bytes = (oos_view){t->bytes ? t->bytes : "", t->len};
    t->bytes = NULL;
    t->len = t->capacity = 0;
    return OOMSIGHT_OK;
}

static oomsight_status finished(session *s, CURLMsg *message, oomsight_error *reterr)
{
    transfer *t = NULL;
    bool again;
    CURLcode const code = message->data.result;
    curl.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
    oomsight_status const status = transfer_end(t, code, &again, reterr);
    curl.curl_multi_remove_handle(s->multi, t->easy);
    s->running--;
    OOS_TRY(status);
    if (again) {
        if (!transfer_arm(t) || curl.curl_multi_add_handle(s->multi, t->easy) != CURLM_OK)
            return nomem(reterr);
        s->running++;
        return OOMSIGHT_OK;
    }
    OOS_TRY(keep(s, t, reterr));
    return s->next < s->count ? start(s, t, reterr) : OOMSIGHT_OK;
}

/* Milliseconds to sleep at most; -1: it is too late. */
static int patience(const oos_fetch_options *options)
{
    if (!options->deadline_ms) return POLL_MS;
    int64_t const left = options->deadline_ms - oos_clock_ms();
    return left <= 0 ? -1 : left < POLL_MS ? (int)left : POLL_MS;
}

static oomsight_status run(session *s, int64_t started_ms, oomsight_error *reterr)
{
    for (size_t i = 0; i < AT_ONCE && s->next < s->count; i++) {
        s->transfers[i].options = s->options;
        s->transfers[i].easy = curl.curl_easy_init();
        if (!s->transfers[i].easy) return nomem(reterr);
        OOS_TRY(start(s, &s->transfers[i], reterr));
    }
    while (s->running) {
        int active, left;
        if (curl.curl_multi_perform(s->multi, &active) != CURLM_OK)
            return oos_fail(reterr, OOMSIGHT_NETWORK, "transfers cannot be run");
        for (CURLMsg *message; (message = curl.curl_multi_info_read(s->multi, &left));)
            if (message->msg == CURLMSG_DONE) OOS_TRY(finished(s, message, reterr));
        if (!s->running) break;
        int const wait_ms = patience(s->options);
        if (wait_ms < 0) return too_slow(s->options->endpoint, reterr);
        tell_waiting(s->options->endpoint, started_ms);
        curl.curl_multi_wait(s->multi, NULL, 0, wait_ms, NULL);
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_fetch_all(oos_arena *arena, const oos_fetch_options *options, oos_fetch *list,
                              size_t count, oomsight_error *reterr)
{
    pthread_once(&curl_once, curl_load);
    if (!curl.ready)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "libcurl.so.4 is needed to contact the Hugging Face Hub, and is not installed");
    if (was_silent(options->endpoint))
        return oos_fail(reterr, OOMSIGHT_NETWORK, "%.300s did not answer, and is not contacted again",
                        options->endpoint);
    session s = {.arena = arena, .options = options, .list = list, .count = count};
    s.multi = curl.curl_multi_init();
    if (!s.multi) return nomem(reterr);
    int64_t const started_ms = oos_clock_ms();
    oomsight_status const status = run(&s, started_ms, reterr);
    atomic_fetch_add(&waited_ms, oos_clock_ms() - started_ms);
    for (size_t i = 0; i < AT_ONCE; i++) {
        transfer *t = &s.transfers[i];
        if (t->easy) {
            curl.curl_multi_remove_handle(s.multi, t->easy); /* harmless when it is not in there */
            curl.curl_easy_cleanup(t->easy);
        }
        curl.curl_slist_free_all(t->headers);
        free(t->url);
        free(t->bytes);
    }
    curl.curl_multi_cleanup(s.multi);
    return status;
}
