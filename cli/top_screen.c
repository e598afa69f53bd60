/* The screen of `oomsight top`: what fits into the terminal, and its keys. */
#include "top.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios found, keys; /* as it was, and as we have it */
static bool changed, begun;
static volatile sig_atomic_t resized;

/* Only calls that a signal may make. */
static void screen_put(const char *code, size_t len)
{
    ssize_t const put = write(STDOUT_FILENO, code, len);
    (void)put; /* a terminal that is gone */
}

static void screen_leave(void)
{
    static const char back[] = "\033[?25h\033[?1049l"; /* the cursor, and what was there before */
    if (begun) screen_put(back, sizeof back - 1);
    if (changed) tcsetattr(STDIN_FILENO, TCSANOW, &found);
}

static void screen_enter(void)
{
    static const char fresh[] = "\033[?1049h\033[?25l";
    if (begun) screen_put(fresh, sizeof fresh - 1);
    if (changed) tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

static void leave_and_end(int number)
{
    screen_leave();
    signal(number, SIG_DFL);
    raise(number);
}

static void note_size(int number)
{
    (void)number;
    resized = 1;
}

/* Ctrl+Z, and what comes after it. */
static void sleep_now(int number)
{
    (void)number;
    screen_leave();
    raise(SIGSTOP);
}

static void wake_up(int number)
{
    (void)number;
    screen_enter();
    resized = 1;
}

void top_screen_begin(void)
{
    static const struct {
        int number;
        void (*act)(int);
    } signals[] = {{SIGINT, leave_and_end}, {SIGTERM, leave_and_end}, {SIGHUP, leave_and_end},
                   {SIGWINCH, note_size},   {SIGTSTP, sleep_now},     {SIGCONT, wake_up}};
    if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &found) == 0) {
        keys = found;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* a key counts at once and is not shown */
        changed = true;
    }
    begun = true;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* a screen is put at once */
    screen_enter();
    atexit(screen_leave);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = signals[i].act};
        sigaction(signals[i].number, &action, NULL);
    }
}

static char typed[32]; /* and not yet answered */
static size_t typed_count;

/* An arrow or another key of several bytes is none of ours; what is typed ahead is kept. */
static int key_next(void)
{
    int const key = typed[0] | 0x20;
    memmove(typed, typed + 1, --typed_count);
    return key;
}

/* Its last byte is above its others and `[`. */
static size_t escape_len(const char *at, size_t left)
{
    size_t len = 1;
    while (len < left && (len == 1 || at[len] < '@')) len++;
    return len < left ? len + 1 : left;
}

static void keys_read(void)
{
    ssize_t const count = read(STDIN_FILENO, typed, sizeof typed);
    typed_count = 0;
    if (count <= 0) typed[typed_count++] = 'q';
    for (size_t i = 0; count > 0 && i < (size_t)count;)
        if (typed[i] == '\033')
            i += escape_len(typed + i, (size_t)count - i);
        else
            typed[typed_count++] = typed[i++];
}

int top_screen_wait(double seconds)
{
    double const until = seconds_since_boot() + seconds;
    for (double left = seconds; left > 0; left = until - seconds_since_boot()) {
        struct pollfd keyboard = {.fd = changed ? STDIN_FILENO : -1, .events = POLLIN};
        if (!resized && !typed_count && poll(&keyboard, 1, 1 + (int)(1000 * left)) > 0) keys_read();
        if (resized) {
            resized = 0;
            return TOP_KEY_RESIZED;
        }
        if (typed_count) return key_next();
    }
    return TOP_KEY_NONE;
}

void top_screen_size(unsigned *ret_rows, unsigned *ret_columns)
{
    struct winsize size = {0};
    bool const known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *ret_rows = known && size.ws_row > 1 ? size.ws_row : 24;
    *ret_columns = known && size.ws_col > 1 ? size.ws_col : 80;
}

/* A part of a line, cut where the terminal would wrap it: colours take no column, a character of several bytes takes one. */
static void put_part(const char *line, size_t len, unsigned columns)
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
}

static void put_line(const char *line, size_t len, unsigned columns)
{
    put_part(line, len, columns);
    putchar('\n');
}

void top_screen_text(const char *text, unsigned rows, unsigned columns)
{
    for (unsigned row = 1; row <= rows && *text; row++) {
        size_t const len = strcspn(text, "\n");
        put_part(text, len, columns);
        text += len + (text[len] == '\n');
        if (*text && row < rows) putchar('\n');
    }
}

void top_screen_line(const char *line, unsigned columns)
{
    put_part(line, strlen(line), columns);
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
