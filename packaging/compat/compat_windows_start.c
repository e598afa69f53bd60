/* Where the command begins on Windows: its words as UTF-8, bytes in and out as they are, a console that shows them. */
#include "compat_windows.h"
#undef main

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <shellapi.h>

int oomsight_main(int argc, char **argv);

/* A path that is there is handed on with the slashes that every program understands. */
static void slashes(const wchar_t *wide, char *word)
{
    if (GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES) return;
    for (; *word; word++)
        if (*word == '\\') *word = '/';
}

static char *word_of(const wchar_t *wide)
{
    int const bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *word = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (!word || WideCharToMultiByte(CP_UTF8, 0, wide, -1, word, bytes, NULL, NULL) <= 0) exit(4);
    slashes(wide, word);
    return word;
}

static void console_settle(void)
{
    DWORD mode;
    HANDLE const out = GetStdHandle(STD_OUTPUT_HANDLE);
    for (int fd = 0; fd < 3; fd++) (void)_setmode(fd, _O_BINARY);
    if (!GetConsoleMode(out, &mode)) return;
    SetConsoleOutputCP(CP_UTF8);
    SetConsoleMode(out, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

int main(void)
{
    int count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **words = wide ? calloc((size_t)count + 1, sizeof *words) : NULL;
    if (!words) return 4;
    for (int i = 0; i < count; i++) words[i] = word_of(wide[i]);
    LocalFree(wide);
    console_settle();
    return oomsight_main(count, words);
}
