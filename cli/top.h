/* What the files of `oomsight top` share. */
#pragma once
#include "cli.h"

/* top_name.c: of the processes in `folder`, as /proc; "" when nothing is known. */
enum { TOP_NAME_BYTES = 128 };
void top_name(const char *folder, int pid, char *ret_name, size_t capacity);

/* top_screen.c: keys are taken one by one, and the terminal is as before in the end. */
void top_screen_begin(void);
enum { TOP_KEY_NONE, TOP_KEY_RESIZED };
int top_screen_wait(double seconds); /* a letter; none: the time is over */
void top_screen_size(unsigned *ret_rows, unsigned *ret_columns);
void top_screen_line(const char *line, unsigned columns); /* cut where the terminal would wrap it */
void top_screen_text(const char *text, unsigned rows,
                     unsigned columns); /* its lines, the last without a break */
/* Whole lines that fit: each text its first ones, and what is left out is said. */
void top_screen_put(char *const *texts, size_t count, unsigned rows, unsigned columns);
