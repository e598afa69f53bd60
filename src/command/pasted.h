/* A text as people paste it: what a terminal or a forum put around a command is taken off. Every line stays where it is. */
#ifndef OOS_INPUT_PASTED_H
#define OOS_INPUT_PASTED_H

#include "base/arena.h"
#include "base/view.h"

/* Without colours, prompts before commands, and Markdown's fences with what stands outside of them. False: no memory. */
bool oos_pasted_clean(oos_arena *arena, oos_view text, oos_view *ret_text);

/* The name of a model on a hub, `owner/name`, with nothing but flags behind it: people who ask have no command yet. */
bool oos_pasted_model(oos_view text);

/* The first line that is neither empty nor a comment; `#!` is none. */
oos_view oos_pasted_first(oos_view text);

#endif
