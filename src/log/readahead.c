/* A ring of blocks. `filled` and `emptied` count blocks since the start; the difference is what waits:
 *
 *     [ emptied ... filled ) are full, the thread writes block `filled`, the reader reads block `emptied` */
#include "log/log.h"
#include "base/check.h"
#include "base/size.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4, BLOCK_BYTES = 256 << 10 };

struct oos_readahead {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t filled, emptied; /* under the lock, like the two below */
    bool ended, stopped;
    size_t len[BLOCKS];
    size_t given; /* of block `emptied`; the reader's own */
    ssize_t (*fill)(void *, char *, size_t);
    void *context;
    char bytes[BLOCKS][BLOCK_BYTES];
};

/* A whole block if there is that much. False: the end. */
static bool fill_block(oos_readahead *ahead, size_t block)
{
    size_t len = 0;
    ssize_t count = 1;
    while (len < BLOCK_BYTES && count > 0) {
        count = ahead->fill(ahead->context, ahead->bytes[block] + len, BLOCK_BYTES - len);
        if (count > 0) len += (size_t)count;
    }
    ahead->len[block] = len;
    return count > 0;
}

static void *run(void *context)
{
    oos_readahead *ahead = context;
    bool more = true;
    while (more) {
        pthread_mutex_lock(&ahead->lock);
        while (!ahead->stopped && ahead->filled - ahead->emptied == BLOCKS)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        oos_assert(ahead->filled - ahead->emptied <= BLOCKS);
        size_t const block = ahead->filled % BLOCKS;
        more = !ahead->stopped;
        pthread_mutex_unlock(&ahead->lock);
        if (more) more = fill_block(ahead, block);
        pthread_mutex_lock(&ahead->lock);
        if (!ahead->stopped) ahead->filled++;
        ahead->ended = !more;
        pthread_cond_signal(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
    }
    return NULL;
}

oos_readahead *oos_readahead_start(ssize_t (*fill)(void *context, char *bytes, size_t capacity),
                                   void *context)
{
    oos_readahead *ahead = malloc(sizeof *ahead);
    if (!ahead) return NULL;
    memset(ahead, 0, offsetof(oos_readahead, bytes));
    ahead->fill = fill;
    ahead->context = context;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (pthread_create(&ahead->thread, NULL, run, ahead) == 0) return ahead;
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
    return NULL;
}

size_t oos_readahead_take(oos_readahead *ahead, char *bytes, size_t capacity)
{
    for (;;) {
        pthread_mutex_lock(&ahead->lock);
        while (ahead->filled == ahead->emptied && !ahead->ended)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        bool const none = ahead->filled == ahead->emptied;
        size_t const block = ahead->emptied % BLOCKS;
        pthread_mutex_unlock(&ahead->lock);
        if (none) return 0;

        oos_assert(ahead->given <= ahead->len[block] && ahead->len[block] <= BLOCK_BYTES);
        size_t const count = oos_min(capacity, ahead->len[block] - ahead->given);
        memcpy(bytes, ahead->bytes[block] + ahead->given, count);
        ahead->given += count;
        if (ahead->given == ahead->len[block]) {
            ahead->given = 0;
            pthread_mutex_lock(&ahead->lock);
            ahead->emptied++;
            pthread_cond_signal(&ahead->changed);
            pthread_mutex_unlock(&ahead->lock);
        }
        if (count) return count;
    }
}

void oos_readahead_stop(oos_readahead *ahead)
{
    if (!ahead) return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stopped = true;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}
