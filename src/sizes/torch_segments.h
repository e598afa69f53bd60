/* The first parameter for which there is no room: the number in the engine's message when loading fails. */
#ifndef OOS_SIZES_TORCH_SEGMENTS_H
#define OOS_SIZES_TORCH_SEGMENTS_H

#include "sizes/shard.h"

/* Bytes of the segment that is asked for and refused when the parameters of a stage are created in `room_bytes`; 0 when
 * all of them fit, or when the order is not known (parts of them in host memory). */
uint64_t oos_weights_tried(const oos_shard *shard, uint64_t stage, uint64_t room_bytes);

/* A rotary table, made with the first layer; `later_bytes` (0: none) takes its place when all is there. */
typedef struct oos_weights_table {
    uint64_t bytes, later_bytes;
} oos_weights_table;

enum { OOS_WEIGHTS_TABLES = 8 };

/* Free rests of the segments that hold the parameters of a stage when there is room for all: of no use to a large tensor, and not free for
 * who asks the device. False: the order is not known. */
bool oos_weights_cached(const oos_shard *shard, uint64_t stage, const oos_weights_table *tables,
                        size_t table_count, uint64_t *ret_bytes);

#endif
