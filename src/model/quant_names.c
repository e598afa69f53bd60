/* Module names, by layer. */
#include "model/model.h"

#include <stdlib.h>

/* "model.layers.12.mlp" -> 12. Only where a dot follows: "model.layers.1" is also the beginning of layer 10. */
static uint64_t layer_in(const char *text)
{
    const char *at = strstr(text, "layers.");
    if (!at) return UINT64_MAX;
    at += strlen("layers.");
    uint64_t number = 0;
    const char *digits = at;
    while (*at >= '0' && *at <= '9' && at - digits < 9) number = number * 10 + (uint64_t)(*at++ - '0');
    return at > digits && *at == '.' ? number : UINT64_MAX;
}

bool oos_names_add(oos_arena *arena, oos_names *names, const char *text, bool regular, uint32_t value)
{
    if (names->count == names->room) {
        size_t const room = names->room ? names->room * 2 : 64;
        oos_name *list = OOS_NEW_ARRAY(arena, oos_name, room);
        if (!list) return false;
        if (names->count) memcpy(list, names->list, names->count * sizeof *list);
        names->list = list;
        names->room = room;
    }
    oos_name name = {.text = text,
                     .layer = regular ? UINT64_MAX : layer_in(text),
                     .value = value,
                     .order = (uint32_t)names->count};
    if (regular) name.pattern = oos_regex_compile(arena, text);
    names->list[names->count++] = name;
    names->sorted = false;
    return true;
}

static int by_layer(const void *x, const void *y)
{
    const oos_name *a = x, *b = y;
    if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

void oos_names_sort(oos_names *names)
{
    if (names->count > 1) qsort(names->list, names->count, sizeof *names->list, by_layer);
    names->sorted = true;
}

static size_t first_of(const oos_names *names, uint64_t layer)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (names->list[middle].layer < layer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const oos_name *visit_from(const oos_names *names, uint64_t layer, oos_name_visit *visit,
                                  void *context)
{
    for (size_t i = first_of(names, layer); i < names->count && names->list[i].layer == layer; i++)
        if (visit(&names->list[i], context)) return &names->list[i];
    return NULL;
}

const oos_name *oos_names_find(const oos_names *names, uint64_t layer, oos_name_visit *visit, void *context)
{
    if (layer == UINT64_MAX) {
        for (size_t i = 0; i < names->count; i++)
            if (visit(&names->list[i], context)) return &names->list[i];
        return NULL;
    }
    const oos_name *found = visit_from(names, layer, visit, context);
    return found ? found : visit_from(names, UINT64_MAX, visit, context);
}

bool oos_names_layerless(const oos_names *names)
{
    if (names->count && names->list[0].layer != UINT64_MAX) return false; /* sorted: own layers come first */
    for (size_t i = 0; i < names->count; i++)
        if (strpbrk(names->list[i].text, "0123456789") || strstr(names->list[i].text, "\\d")) return false;
    return true;
}
