/* Parts of a report, and which of them fit. */
#include "report/report.h"

oos_style oos_screen_part(oos_screen *screen, const oos_style *style, unsigned rank)
{
    oos_style inside = *style;
    size_t const at = screen->count < OOS_SCREEN_PARTS ? screen->count++ : OOS_SCREEN_PARTS - 1;
    screen->ranks[at] = rank;
    inside.text = &screen->parts[at];
    return inside;
}

static size_t lines_of(const oos_text *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->len; i++) lines += text->ptr[i] == '\n';
    return lines;
}

/* The part to leave out: the last of the highest rank. NULL: all that are left must stay. */
static oos_text *least(oos_screen *screen)
{
    oos_text *found = NULL;
    unsigned rank = 1;
    for (size_t i = 0; i < screen->count; i++) {
        if (!screen->parts[i].len || screen->ranks[i] < rank) continue;
        rank = screen->ranks[i];
        found = &screen->parts[i];
    }
    return found;
}

void oos_screen_put(oos_screen *screen, const oos_style *style, bool whole, const char *hint)
{
    size_t lines = 0;
    bool left_out = false;
    for (size_t i = 0; i < screen->count; i++) lines += lines_of(&screen->parts[i]);
    for (oos_text *part; !whole && lines + left_out > OOS_SCREEN_LINES && (part = least(screen));
         left_out = true) {
        lines -= lines_of(part);
        part->len = 0;
    }
    for (size_t i = 0; i < screen->count; i++) {
        oos_text *part = &screen->parts[i];
        oos_text_add(style->text, (oos_view){part->ptr ? part->ptr : "", part->len});
        style->text->failed |= part->failed;
        oos_text_free(part);
    }
    screen->count = 0;
    if (left_out) oos_style_ink(style, OOS_INK_DIM, "%s\n", hint);
}
