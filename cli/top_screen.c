/* The screen of `oomsight top`: what fits into the terminal, and the key that ends it. */
#include "top.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios found; /* as it was */
static bool changed;

static void terminal_restore(void)
{
    if (changed) tcsetattr(STDIN_FILENO, TCSANOW, &found);
}

static void restore_and_end(int number)
{
    terminal_restore();
    signal(number, SIG_DFL);
    raise(number);
}

void top_screen_begin(void)
{
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &found) != 0) return;
    struct termios keys = found;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* a key counts at once and is not shown */
    changed = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
    atexit(terminal_restore);
    for (size_t i = 0; i < 3; i++) signal((int[]){SIGINT, SIGTERM, SIGHUP}[i], restore_and_end);
}

bool top_screen_wait(double seconds)
{
    double const until = seconds_since_boot() + seconds;
    for (double left = seconds; left > 0; left = until - seconds_since_boot()) {
        struct pollfd keys = {.fd = changed ? STDIN_FILENO : -1, .events = POLLIN};
        char pressed[32];
        if (poll(&keys, 1, 1 + (int)(1000 * left)) <= 0) continue;
        ssize_t const count = read(STDIN_FILENO, pressed, sizeof pressed);
        if (count <= 0 || memchr(pressed, 'q', (size_t)count) || memchr(pressed, 'Q', (size_t)count))
            return false;
    }
    return true;
}

void top_screen_size(unsigned *ret_rows, unsigned *ret_columns)
{
    struct winsize size = {0};
    bool const known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *ret_rows = known && size.ws_row > 1 ? size.ws_row : 24;
    *ret_columns = known && size.ws_col > 1 ? size.ws_col : 80;
}

/* One line, cut where the terminal would wrap it: colours take no column, a character of several bytes takes one. */
static void put_line(const char *line, size_t len, unsigned columns)
{
    unsigned shown = 0;
    for (size_t i = 0; i < len; i++) {
        bool const begins = ((unsigned char)line[i] & 0xc0) != 0x80;
        if (line[i] == '\033') { /* to its letter, even behind the edge: a colour ends there */
            do putchar(line[i]);
            while (++i < len && !((line[i] >= 'A' && line[i] <= 'Z') || (line[i] >= 'a' && line[i] <= 'z')));
            if (i < len) putchar(line[i]);
            continue;
        }
        if (begins) shown++;
        if (shown <= columns) putchar(line[i]);
    }
    putchar('\n');
}

void top_screen_line(const char *line, unsigned columns)
{
    put_line(line, strlen(line), columns);
}

static unsigned lines_of(const char *text)
{
    unsigned count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

/* The first lines of a text; what is left out is counted in the last of them. */
static void put_some(const char *text, unsigned most, unsigned columns)
{
    unsigned const all = lines_of(text), whole = all <= most ? all : most - 1;
    for (unsigned i = 0; i < whole; i++) {
        size_t const len = strcspn(text, "\n");
        put_line(text, len, columns);
        text += len + 1;
    }
    if (whole == all) return;
    char rest[64];
    snprintf(rest, sizeof rest, "  ... %u lines more", all - whole);
    put_line(rest, strlen(rest), columns);
}

void top_screen_put(char *const *texts, size_t count, unsigned rows, unsigned columns)
{
    unsigned room = rows - 1; /* the cursor stays on the last */
    size_t shown = 0;
    for (; shown < count && room >= 2; shown++) {
        size_t const others = count - shown - 1;
        unsigned wanted = 0, share = room;
        for (size_t i = shown + 1; i < count; i++) wanted += lines_of(texts[i]);
        /* what the others do not need is this one's, and at least an equal part */
        if (wanted + lines_of(texts[shown]) > room) {
            unsigned const equal = room / (unsigned)(others + 1);
            share = wanted < room - equal ? room - wanted : equal;
            if (share < 2) share = 2;
        }
        unsigned const took = lines_of(texts[shown]) < share ? lines_of(texts[shown]) : share;
        put_some(texts[shown], share, columns);
        room -= took;
    }
    if (shown < count && room) printf("... %zu runs more\n", count - shown);
}
