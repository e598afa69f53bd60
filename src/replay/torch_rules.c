/* Version -> rules. Each boundary was seen on the unmodified library of the releases on both sides of it. */
#include "replay/replay.h"

static oos_hint hint_of(oos_version torch)
{
    if (torch < OOS_VERSION(2, 2, 0)) return OOS_HINT_MAX_SPLIT;
    if (torch < OOS_VERSION(2, 10, 0)) return OOS_HINT_CUDA_CONF;
    if (torch < OOS_VERSION(2, 11, 0)) return OOS_HINT_ALLOC_CONF;
    if (torch < OOS_VERSION(2, 14, 0)) return OOS_HINT_DOCS;
    if (torch < OOS_VERSION(2, 15, 0)) return OOS_HINT_DOCS_OR_NONE;
    return OOS_HINT_BY_CAUSE;
}

oos_torch_rules oos_torch_rules_of(oos_version torch)
{
    bool const v2_3 = torch >= OOS_VERSION(2, 3, 0), v2_4 = torch >= OOS_VERSION(2, 4, 0);
    bool const v2_5 = torch >= OOS_VERSION(2, 5, 0), v2_8 = torch >= OOS_VERSION(2, 8, 0);
    bool const v2_10 = torch >= OOS_VERSION(2, 10, 0), v2_11 = torch >= OOS_VERSION(2, 11, 0);
    bool const v2_12 = torch >= OOS_VERSION(2, 12, 0), v2_13 = torch >= OOS_VERSION(2, 13, 0);
    return (oos_torch_rules){
        .torch = torch,
        .order = v2_13   ? OOS_ORDER_SEGMENT
                 : v2_12 ? OOS_ORDER_BLOCK
                         : OOS_ORDER_ADDRESS,
        .lender_turn = v2_11  ? OOS_LENDER_FIRST
                       : v2_8 ? OOS_LENDER_LAST
                              : OOS_LENDER_NEVER,
        .hint = hint_of(torch),
        .routing_is_capture = !v2_13,
        .oldest_route_wins = !v2_10,
        .lends_expandable = !v2_10,
        .one_division_rounds = v2_4,
        .rest_starts_next_slot = v2_10,
        .full_fraction_unsets = v2_10,
        .segment_size_key = v2_11,
        .new_parser = v2_10,
        .throw_key = v2_12,
        .reserve_key = torch >= OOS_VERSION(2, 15, 0),
        .private_expandable = v2_5,
        .forgets_capture_uses = v2_4,
        .pool_empty_cache = v2_8,
        .no_split_pools = v2_10,
        .text_misspells = torch < OOS_VERSION(2, 2, 0),
        .text_ends_at_index = v2_3 && !v2_4,
        .text_private_pools = v2_4,
        .text_allowed = v2_5,
        .traces_driver_calls = v2_5,
    };
}
