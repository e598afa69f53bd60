/* A text that grows in pieces, beside another on the same bench, stopped and gone on with at any place: nothing that was told
 * is lost or moved, and the place to go on from never lies behind what was read. The first byte says how long the pieces are. */
#include "fuzz.h"

#include "explain/explain.h"
#include "follow/follow.h"

static oos_knowledge knowledge;
static oos_arena *results;
static oos_bench *bench;
static oos_explanation found;

static void on_incident(void *context, const oos_incident *incident, bool again)
{
    (void)context;
    (void)again;
    FUZZ_REQUIRE(incident->first_part != incident->last_part || incident->first_byte <= incident->last_byte);
}

static oos_explainer *open_at(uint64_t byte, uint64_t lines)
{
    oos_scan_origin const origin = {.growing = true, .byte = byte, .lines = lines};
    oos_explainer *explainer;
    FUZZ_REQUIRE(oos_explainer_open_growing(results, &knowledge, bench, &origin, &found, on_incident, NULL,
                                            &explainer, NULL) == OOMSIGHT_OK);
    return explainer;
}

static void give(oos_explainer *explainer, const char *bytes, size_t len)
{
    while (len) {
        size_t capacity;
        char *room = oos_linescan_room(oos_explainer_scan(explainer), &capacity);
        FUZZ_REQUIRE(room);
        size_t const count = len < capacity ? len : capacity;
        memcpy(room, bytes, count);
        FUZZ_REQUIRE(oos_linescan_took(oos_explainer_scan(explainer), count, NULL) == OOMSIGHT_OK);
        bytes += count;
        len -= count;
    }
}

/* As after a kill: what is known goes through the state, reading goes on at the place that was saved. */
static uint64_t stop_and_go_on(oos_explainer **explainer, oos_arena *arena, uint32_t part, uint64_t base,
                               uint64_t read)
{
    oos_collector_point const at = oos_collector_at(oos_explainer_collector(*explainer));
    uint64_t byte = at.first_byte, lines = at.first_line ? at.first_line - 1 : 0;
    if (!at.open || at.first_part != part) oos_linescan_place(oos_explainer_scan(*explainer), &byte, &lines);
    FUZZ_REQUIRE(byte >= base && byte <= read);
    oos_text text = {0};
    oos_incident history;
    oos_history_write(&knowledge.signals, at.history, &text);
    FUZZ_REQUIRE(!text.failed &&
                 oos_history_read(arena, &knowledge.signals, (oos_view){text.ptr, text.len}, &history));
    oos_explainer_close(*explainer);
    *explainer = open_at(byte, lines);
    oos_collector_resume(oos_explainer_collector(*explainer), &history, at.told, at.time);
    oos_text_free(&text);
    return byte;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!results) {
        oos_arena *arena = oos_arena_create(1 << 20);
        results = oos_arena_create(1 << 16);
        FUZZ_REQUIRE(oos_knowledge_load(arena, NULL, &knowledge, NULL) == OOMSIGHT_OK &&
                     oos_bench_create(knowledge.signals.literals, &bench, NULL) == OOMSIGHT_OK);
    }
    if (size < 2) return 0;
    size_t const step = data[0] % 97 + 1;
    unsigned const kinds = data[1];
    const char *bytes = (const char *)data + 2;
    size_t const len = size - 2;
    oos_arena *arena = oos_arena_create(4096);
    oos_explainer *one = open_at(0, 0), *other = open_at(0, 0);
    uint64_t base = 0;
    uint32_t part = 0;
    size_t turns = 0;
    for (size_t at = 0; at < len; turns++) {
        size_t const count = len - at < step ? len - at : step;
        give(one, bytes + at, count);
        at += count;
        if (kinds & 1) give(other, bytes + at / 2, count < len - at / 2 ? count : len - at / 2);
        if (kinds & 2 && turns % 7 == 3) FUZZ_REQUIRE(oos_explainer_settle(one, NULL) == OOMSIGHT_OK);
        if (kinds & 4 && turns % 5 == 2)
            FUZZ_REQUIRE(oos_linescan_settle(oos_explainer_scan(one), NULL) == OOMSIGHT_OK);
        if (kinds & 8 && turns % 11 == 5 && turns < 64) {
            base = stop_and_go_on(&one, arena, part, base, at);
            part = 0;
            give(one, bytes + base, at - (size_t)base);
        }
        if (kinds & 16 && turns % 13 == 6) {
            oos_scan_origin const next = {.growing = true, .byte = at, .lines = 1};
            FUZZ_REQUIRE(oos_explainer_next_part(one, &next, NULL) == OOMSIGHT_OK);
            base = at;
            part++;
        }
    }
    oos_logtime_read((oos_view){bytes, len}, 1767323045000000000);
    char *path = strndup(bytes, len);
    oos_origin_of(path);
    free(path);
    oos_incident history;
    oos_history_read(arena, &knowledge.signals, (oos_view){bytes, len}, &history);
    FUZZ_REQUIRE(oos_explainer_settle(one, NULL) == OOMSIGHT_OK);
    FUZZ_REQUIRE(oos_explainer_settle(other, NULL) == OOMSIGHT_OK);
    FUZZ_REQUIRE(!oos_explainer_waits(one) && !oos_explainer_waits(other));
    oos_explainer_close(one);
    oos_explainer_close(other);
    oos_arena_free(arena);
    return 0;
}
