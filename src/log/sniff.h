/* What an input is, by its first bytes: a log, or something else that only happens to hold its words. */
#ifndef OOS_LOG_SNIFF_H
#define OOS_LOG_SNIFF_H

#include "base/view.h"

/* No text: a picture, a program, a tensor. Runs of NUL bytes, as a rotated log begins with, do not count, but where `head` is all
 * there is and holds nothing else. */
bool oos_sniff_binary(oos_view head, bool whole);

/* A text that somebody wrote about something: it begins with a title (Markdown, reStructuredText, a manual page). */
bool oos_sniff_document(oos_view head);

#endif
