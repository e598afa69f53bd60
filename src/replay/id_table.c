/* Robin Hood probing with Fibonacci hashing, as torch's flat hash map does it (c10/util/flat_hash_map.h, the same from
 * 2.5 to 2.15): at most half full, at most log2(slots) but never fewer than 4 probes, twice the slots when either runs
 * out, and on a removal what follows moves up. Items whose hashes ask for the same slot stay in the order they came. */
#include "replay/replay.h"
#include "base/check.h"

#include <stdlib.h>

enum { FEWEST_SLOTS = 4, FEWEST_PROBES = 4, SPARSE_SLOTS = 1 << 16, SPARSE = 64, SLOTS_MAX = 1 << 28 };

static size_t wanted_slot(const oos_id_table *table, uint64_t hash)
{
    oos_assert(table->slots >= FEWEST_SLOTS && (table->slots & (table->slots - 1)) == 0);
    return (size_t)((hash * 11400714819323198485u) >> (64 - __builtin_ctzll(table->slots)));
}

static size_t entry_count(const oos_id_table *table)
{
    return table->slots ? table->slots + (size_t)table->probes - 1 : 0;
}

ptrdiff_t oos_id_table_next(const oos_id_table *table, ptrdiff_t at)
{
    for (size_t i = (size_t)at; i < entry_count(table); i++)
        if (table->entries[i].distance >= 0) return (ptrdiff_t)i;
    return OOS_ID_TABLE_END;
}

ptrdiff_t oos_id_table_find(const oos_id_table *table, uint32_t value)
{
    ptrdiff_t at = oos_id_table_next(table, 0);
    while (at >= 0 && table->entries[at].value != value) at = oos_id_table_next(table, at + 1);
    return at;
}

/* Is it there: where its hash leads, a nearer item ends the search. */
static bool holds(const oos_id_table *table, uint64_t hash, uint32_t value)
{
    if (!table->slots) return false;
    const oos_id_entry *at = &table->entries[wanted_slot(table, hash)];
    for (int8_t distance = 0; distance < table->probes && at->distance >= distance; at++, distance++)
        if (at->value == value) return true;
    return false;
}

/* One item into a table that is large enough by count. False: the probes ran out, and *item is still to be placed; the
 * item that found no place then lies where the new one was first put, as torch leaves it for the larger table. */
static bool place(oos_id_table *table, oos_id_entry *item)
{
    size_t at = wanted_slot(table, item->hash);
    oos_id_entry *first = NULL;
    for (item->distance = 0; item->distance < table->probes; at++, item->distance++) {
        oos_id_entry *here = &table->entries[at];
        oos_id_entry const moved = *here;
        if (here->distance >= item->distance) continue;
        *here = *item;
        if (moved.distance < 0) {
            table->count++;
            return true;
        }
        if (!first) first = here;
        *item = moved;
    }
    if (first) {
        oos_id_entry const stuck = *item;
        *item = *first;
        *first = stuck;
    }
    return false;
}

static bool grow(oos_id_table *table)
{
    /* Ids that all ask for one slot would double it for ever, in torch as here. */
    if (table->slots >= SLOTS_MAX || (table->slots >= SPARSE_SLOTS && table->count < table->slots / SPARSE))
        return false;
    oos_id_table larger = {.slots = table->slots ? table->slots * 2 : FEWEST_SLOTS};
    int const log = __builtin_ctzll(larger.slots);
    larger.probes = (int8_t)(log > FEWEST_PROBES ? log : FEWEST_PROBES);
    larger.entries = malloc(entry_count(&larger) * sizeof *larger.entries);
    if (!larger.entries) return false;
    for (size_t i = 0; i < entry_count(&larger); i++) larger.entries[i].distance = -1;
    for (ptrdiff_t at = oos_id_table_next(table, 0); at >= 0; at = oos_id_table_next(table, at + 1)) {
        if (oos_id_table_insert(&larger, table->entries[at].hash, table->entries[at].value)) continue;
        oos_id_table_release(&larger);
        return false;
    }
    oos_assert(larger.count == table->count);
    oos_id_table_release(table);
    *table = larger;
    return true;
}

bool oos_id_table_insert(oos_id_table *table, uint64_t hash, uint32_t value)
{
    if (holds(table, hash, value)) return true;
    oos_id_entry item = {.hash = hash, .value = value};
    while (table->slots == 0 || 2 * (table->count + 1) > table->slots || !place(table, &item))
        if (!grow(table)) return false;
    oos_assert(holds(table, hash, value));
    return true;
}

void oos_id_table_erase(oos_id_table *table, ptrdiff_t at)
{
    size_t hole = (size_t)at;
    oos_assert(hole < entry_count(table) && table->entries[hole].distance >= 0 && table->count > 0);
    table->count--;
    for (; hole + 1 < entry_count(table) && table->entries[hole + 1].distance > 0; hole++) {
        table->entries[hole] = table->entries[hole + 1];
        table->entries[hole].distance--;
    }
    table->entries[hole].distance = -1;
}

void oos_id_table_release(oos_id_table *table)
{
    free(table->entries);
    *table = (oos_id_table){0};
}
