#include "facts/facts.h"
#include "base/size.h"

static bool within(const uint32_t span[2], uint64_t value)
{
    return value >= span[0] && value <= span[1];
}

static bool holds(const oos_constant_row *row, const oos_constant_where *where)
{
    return within(row->capability, oos_min(where->capability, 999)) &&
           within(row->torch, where->torch_minor ? oos_min(where->torch_minor, 999) : 999) &&
           within(row->ranks, oos_min(where->ranks, 1 << 20)) && where->version >= row->since &&
           where->version < row->before && (row->nvlink < 0 || row->nvlink == where->nvlink) &&
           (row->unified < 0 || row->unified == where->unified);
}

oos_constant oos_constant_at(const oos_constants *constants, size_t id, const oos_constant_where *where)
{
    for (size_t i = id < constants->count ? constants->first[id] : 0;
         id < constants->count && i < constants->first[id + 1]; i++)
        if (constants->rows[i].anywhere || holds(&constants->rows[i], where))
            return constants->rows[i].constant;
    return (oos_constant){0};
}

enum { ENOUGH_SOURCES = 3 };

uint64_t oos_constant_end_of(oos_constant constant, oos_constant_end end)
{
    if (constant.sources >= ENOUGH_SOURCES || end == OOS_CONSTANT_VALUE) return constant.value;
    return end == OOS_CONSTANT_LOW ? constant.low : constant.high;
}

uint64_t oos_constant_of(const oos_constants *constants, size_t id, const oos_constant_where *where)
{
    return oos_constant_end_of(oos_constant_at(constants, id, where), where->end);
}
