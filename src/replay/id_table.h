/* Pools by id, walked in the order torch walks them. torch keeps the pools it may give up, and those that lend, in open
 * hash tables, and the order of a walk decides which memory goes first; so the order is part of what is simulated. */
#ifndef OOS_REPLAY_ID_TABLE_H
#define OOS_REPLAY_ID_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oos_id_entry {
    uint64_t hash;
    uint32_t value;
    int8_t distance; /* slots behind the one the hash asks for; below 0: empty */
} oos_id_entry;

/* All zero: empty. */
typedef struct oos_id_table {
    oos_id_entry *entries; /* slots + probes - 1 of them */
    size_t slots, count;
    int8_t probes;
} oos_id_table;

enum { OOS_ID_TABLE_END = -1 };

/* Values are unique: a value that is there already stays. False when out of memory; the table is then only good for release(). */
bool oos_id_table_insert(oos_id_table *table, uint64_t hash, uint32_t value);
/* Positions are walked with next(): the first at or behind `at`, or OOS_ID_TABLE_END. */
ptrdiff_t oos_id_table_next(const oos_id_table *table, ptrdiff_t at);
ptrdiff_t oos_id_table_find(const oos_id_table *table, uint32_t value);
/* What follows may move up into `at`, which is where a walk goes on. */
void oos_id_table_erase(oos_id_table *table, ptrdiff_t at);
void oos_id_table_release(oos_id_table *table);

#endif
