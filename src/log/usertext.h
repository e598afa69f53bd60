/* What a user of the engine wrote, in a line that logs a request: prompts, chat messages, bodies of the API, and what the model
 * answered. It may hold the words of any failure and is no evidence of one, nor is it anybody else's to read. */
#ifndef OOS_LOG_USERTEXT_H
#define OOS_LOG_USERTEXT_H

#include "base/view.h"

/* The quoted texts of `line` become "..."; the new length. *ret_lines: lines of `after` that still belong to the last of them, as
 * a prompt with line breaks does where nobody escaped them. A line that logs no request stays as it is. */
size_t oos_usertext_mask(char *line, size_t len, oos_view after, size_t *ret_lines);

#endif
