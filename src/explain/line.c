#include "explain/explain.h"

#include <stdlib.h>

enum { HITS = 64 };

struct oos_line_reader {
    oos_arena *arena;
    oos_signals signals;
    oos_literal_scan *scan;
};

oomsight_status oos_line_reader_create(const char *data_dir, oos_line_reader **ret_reader,
                                       oomsight_error *reterr)
{
    oos_line_reader *reader = calloc(1, sizeof *reader);
    if (reader) reader->arena = oos_arena_create(64 << 10);
    oomsight_status status = reader && reader->arena
                                 ? oos_signals_load(reader->arena, data_dir, &reader->signals, reterr)
                                 : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for reading lines");
    if (status == OOMSIGHT_OK)
        status = oos_literal_scan_open(reader->signals.literals, &reader->scan, reterr);
    if (status != OOMSIGHT_OK) {
        oos_line_reader_free(reader);
        return status;
    }
    *ret_reader = reader;
    return OOMSIGHT_OK;
}

void oos_line_reader_free(oos_line_reader *reader)
{
    if (!reader) return;
    oos_literal_scan_close(reader->scan);
    oos_arena_free(reader->arena);
    free(reader);
}

void oos_line_read(oos_line_reader *reader, oos_view line,
                   void (*on_signal)(void *context, const oos_signal *signal, const oos_match *match),
                   void *context)
{
    oos_signal_set found = {0};
    oos_hit hits[HITS];
    size_t count = 0;
    bool cut;
    if (!reader || !line.len || oos_literal_scan_restart(reader->scan, NULL) != OOMSIGHT_OK ||
        oos_literal_scan_feed(reader->scan, line, hits, HITS, &count, &cut, NULL) != OOMSIGHT_OK)
        return;
    const oos_signals *s = &reader->signals;
    for (size_t i = 0; i < count; i++)
        for (uint32_t o = s->first[hits[i].literal]; o < s->first[hits[i].literal + 1]; o++)
            oos_signal_add(&found, s->owners[o]);
    for (size_t i = 0; count && i < s->count; i++) {
        oos_match match = {0};
        if (!oos_signal_has(&found, i)) continue;
        if (!s->list[i].pattern || oos_pattern_find(s->list[i].pattern, line, 0, &match))
            on_signal(context, &s->list[i], &match);
    }
}
