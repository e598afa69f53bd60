/* Which engine a command starts: its interpreter, its torch and its release, and the words it needs to start from a directory
 * that has neither weights nor tokenizer. Nothing of the engine is imported for that. */
#include "cmd_dryrun.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef OOMSIGHT_SHIM_DIR
#define OOMSIGHT_SHIM_DIR "/usr/lib/oomsight"
#endif

enum { ASK_SECONDS = 60 };

/* Prints "cuda 13.0", "torch 2.13.0" and "engine 0.32.0"; a missing package prints nothing. */
static const char probe[] =
    "import importlib.util as u, importlib.metadata as m, re, os\n"
    "s = u.find_spec('torch')\n"
    "t = open(os.path.join(os.path.dirname(s.origin), 'version.py')).read() if s else ''\n"
    "c = re.search(r\"^cuda[^=]*= ['\\\"]([0-9.]+)\", t, re.M)\n"
    "print('cuda', c.group(1) if c else '')\n"
    "v = re.search(r\"^__version__[^=]*= ['\\\"]([0-9.]+)\", t, re.M)\n"
    "print('torch', v.group(1) if v else '')\n"
    "import sys\n"
    "try: print('engine', m.version(sys.argv[1]))\n"
    "except m.PackageNotFoundError: pass\n";

static bool find_in_path(const char *word, char *ret_path, size_t capacity)
{
    if (strchr(word, '/')) {
        snprintf(ret_path, capacity, "%s", word);
        return access(word, X_OK) == 0;
    }
    const char *list = getenv("PATH");
    for (; list && *list; list += strcspn(list, ":"), list += *list == ':') {
        int const len = (int)strcspn(list, ":");
        snprintf(ret_path, capacity, "%.*s/%s", len, list, word);
        if (access(ret_path, X_OK) == 0) return true;
    }
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A Python script names its interpreter in its first line. */
bool dryrun_interpreter(const char *word, char *ret_path, size_t capacity)
{
    char path[512], line[512] = "";
    if (!find_in_path(word, path, sizeof path)) return false;
    if (strncmp(base_name(path), "python", 6) == 0) {
        snprintf(ret_path, capacity, "%s", path);
        return true;
    }
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool const script = fgets(line, sizeof line, file) && strncmp(line, "#!", 2) == 0;
    fclose(file);
    if (!script) return false;
    char *words[3] = {0};
    int count = 0;
    for (char *rest, *at = strtok_r(line + 2, " \t\r\n", &rest); at && count < 3;
         at = strtok_r(NULL, " \t\r\n", &rest))
        words[count++] = at;
    if (count == 0) return false;
    const char *found = strcmp(base_name(words[0]), "env") == 0 && words[1] ? words[1] : words[0];
    if (strncmp(base_name(found), "python", 6) != 0) return false;
    return find_in_path(found, ret_path, capacity);
}

/* What it prints until it closes its output, is interrupted or has taken too long; then it has served. */
static size_t ask_read(int fd, char *ret_text, size_t capacity)
{
    double const until = dryrun_now() + ASK_SECONDS;
    size_t len = 0;
    while (len + 1 < capacity && !dryrun_interrupted() && dryrun_now() < until) {
        struct pollfd ready = {fd, POLLIN, 0};
        if (poll(&ready, 1, 200) <= 0) continue;
        ssize_t const got = read(fd, ret_text + len, capacity - 1 - len);
        if (got <= 0) break;
        len += (size_t)got;
    }
    ret_text[len] = '\0';
    return len;
}

void dryrun_engine_ask(dryrun_engine *engine)
{
    int ends[2];
    char text[512];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_t const parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(126);
        dup2(ends[1], STDOUT_FILENO);
        if (!freopen("/dev/null", "w", stderr)) _exit(126);
        execl(engine->interpreter, engine->interpreter, "-c", probe,
              engine->name ? engine->name : oomsight_engine_at(0)->name, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ask_read(ends[0], text, sizeof text);
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    const char *cuda = strstr(text, "cuda "), *found = strstr(text, "engine "),
               *torch = strstr(text, "torch ");
    if (cuda) sscanf(cuda, "cuda %15[0-9.]", engine->cuda_version);
    if (torch) sscanf(torch, "torch %31[0-9.]", engine->torch);
    if (found) sscanf(found, "engine %31[^\n ]", engine->version);
    engine->cuda_major = (unsigned)strtoul(engine->cuda_version, NULL, 10);
}

/* NULL: it is not given, or there is no such flag (`name` NULL). */
static const char *word_value(const dryrun_options *options, const char *name)
{
    size_t const len = name ? strlen(name) : 0;
    for (int i = 0; name && i < options->given->word_count; i++) {
        const char *word = options->given->words[i];
        if (strncmp(word, name, len) != 0) continue;
        if (word[len] == '=') return word + len + 1;
        if (word[len] == '\0') return i + 1 < options->given->word_count ? options->given->words[i + 1] : "";
    }
    return NULL;
}

/* A module that serves: FAMILY.[...]SERVING[...] */
static bool is_serving_module(const oomsight_engine_words *engine, const char *word)
{
    size_t const len = engine->family && engine->serving ? strlen(engine->family) : 0;
    return len && strncmp(word, engine->family, len) == 0 && word[len] == '.' &&
           strstr(word + len, engine->serving);
}

/* A server goes on until it is stopped; the rest ends by itself. Returns the engine whose flags the command has. */
static const oomsight_engine_words *look_at_words(const dryrun_options *options, dryrun_engine *engine)
{
    const oomsight_engine_words *spoken = NULL, *at;
    for (int i = 1; i < options->given->word_count; i++) {
        const char *word = options->given->words[i], *before = base_name(options->given->words[i - 1]);
        for (size_t e = 0; (at = oomsight_engine_at(e)); e++) {
            bool const program = strcmp(word, "serve") == 0 && strcmp(before, at->name) == 0;
            if (!program && !is_serving_module(at, word)) continue;
            spoken = at;
            engine->serves = true;
            engine->answers = options->load_count || options->given->serve;
            if (program && i + 1 < options->given->word_count && options->given->words[i + 1][0] != '-')
                engine->model = options->given->words[i + 1];
        }
    }
    const oomsight_engine_words *which = spoken ? spoken : oomsight_engine_at(0);
    engine->name = spoken ? spoken->name : NULL;
    for (size_t i = 0; i < ARRAY_COUNT(which->model_flags); i++) {
        const char *model = word_value(options, which->model_flags[i]);
        if (model) engine->model = model;
    }
    return which;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t const len = strlen(name), end = strlen(suffix);
    return len > end && strcmp(name + len - end, suffix) == 0;
}

static void look_at_model(const char *dir, bool *ret_weights, bool *ret_tokenizer)
{
    static const char *const weights[] = {".safetensors", ".bin", ".gguf", ".pt", ".pth"};
    static const char *const tokenizers[] = {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                                             "vocab.json",     "tekken.json",     "vocab.txt",
                                             "tiktoken.model"};
    DIR *folder = opendir(dir);
    *ret_weights = *ret_tokenizer = folder == NULL; /* not a directory: the engine will know */
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
            if (has_suffix(entry->d_name, weights[i])) *ret_weights = true;
        for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++)
            if (strcmp(entry->d_name, tokenizers[i]) == 0) *ret_tokenizer = true;
    }
    if (folder) closedir(folder);
}

/* The model's config beside the stub: engines ask a tokenizer's folder for it, and try again for seconds where there is none. */
static void copy_config(const char *model, const char *folder)
{
    char path[1024], bytes[4096];
    snprintf(path, sizeof path, "%s/config.json", model);
    FILE *from = fopen(path, "re");
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *to = from ? fopen(path, "we") : NULL;
    for (size_t len; to && (len = fread(bytes, 1, sizeof bytes, from)) > 0;) fwrite(bytes, 1, len, to);
    bool const whole = to && !ferror(to);
    if (to && (fclose(to) != 0 || !whole)) unlink(path); /* half of one is worse than none */
    if (from) fclose(from);
}

/* A tokenizer of a few words: prompts of a dry run are token numbers. Transformers reads it with the class of some model types (Qwen2Tokenizer)
 * whatever its own config says, by letters: without any, the first request of SGLang is empty, which ends the server. */
static bool write_tokenizer(const char *scratch, const char *model, char *ret_dir, size_t capacity)
{
    char path[1024];
    snprintf(ret_dir, capacity, "%s/tokenizer", scratch);
    if (mkdir(ret_dir, 0700) != 0 && errno != EEXIST) return false;
    copy_config(model, ret_dir);
    snprintf(path, sizeof path, "%s/tokenizer.json", ret_dir);
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fputs("{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":null,"
          "\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"post_processor\":null,\"decoder\":null,"
          "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"<s>\":1,\"</"
          "s>\":2",
          file);
    for (int i = 3; i < 1000; i++) fprintf(file, ",\"w%d\":%d", i, i);
    for (int i = 1000; i < 1024; i++) fprintf(file, ",\"%c\":%d", 'a' + i - 1000, i);
    fputs("}}}\n", file);
    bool const written = fclose(file) == 0;
    snprintf(path, sizeof path, "%s/tokenizer_config.json", ret_dir);
    file = fopen(path, "w");
    if (!file) return false;
    fputs("{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"unk_token\":\"<unk>\",\"bos_token\":\"<s>\","
          "\"eos_token\":\"</s>\",\"model_max_length\":1000000000}\n",
          file);
    return fclose(file) == 0 && written;
}

/* 0: none is given out */
static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool const bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 &&
                       getsockname(fd, (struct sockaddr *)&address, &len) == 0;
    if (fd >= 0) close(fd);
    return bound ? ntohs(address.sin_port) : 0;
}

/* A name that needs no network is one here, too: the config files of a built-in model in a folder, whose name takes the place of its. */
static int settle_model(const dryrun_options *options, const oomsight_data *data, const char *scratch,
                        dryrun_engine *engine)
{
    static char folder[600], joined[1200]; /* live as long as the command */
    oomsight_error error = {0};
    oomsight_model_place place;
    if (!engine->model || !engine->name) return 0;
    snprintf(folder, sizeof folder, "%s/model", scratch);
    if (oomsight_model_settle(data, engine->model, folder, &place, &error) != OOMSIGHT_OK)
        return fail_with(&error);
    if (place == OOMSIGHT_MODEL_REMOTE)
        fprintf(
            stderr,
            "oomsight dryrun: %s is no folder, not in the Hugging Face cache and not built in: the engine "
            "contacts the Hugging Face Hub for it. Without network, give a folder with its config.json\n",
            engine->model);
    if (place != OOMSIGHT_MODEL_BUILT_IN) return 0;
    for (int i = 1; i < options->given->word_count; i++) {
        const char *word = options->given->words[i];
        if (engine->model < word || engine->model > word + strlen(word)) continue;
        snprintf(joined, sizeof joined, "%.*s%s", (int)(engine->model - word), word, folder);
        engine->command[i] = joined;
    }
    fprintf(stderr, "oomsight dryrun: %s is started with its built-in config.json and without its weights\n",
            engine->model);
    engine->asked = engine->model;
    engine->model = folder;
    return 0;
}

static int add_words(const dryrun_options *options, const oomsight_engine_words *spoken,
                     const oomsight_data *data, const char *scratch, dryrun_engine *engine)
{
    static char tokenizer[600], port[16]; /* live as long as the command */
    enum { MORE = 8 };
    engine->command = calloc((size_t)options->given->word_count + MORE + 1, sizeof *engine->command);
    if (!engine->command) return EXIT_OUR_FAULT;
    int count = options->given->word_count;
    memcpy(engine->command, options->given->words, (size_t)count * sizeof *engine->command);
    int const code = settle_model(options, data, scratch, engine);
    if (code) return code;
    bool weights = true, has_tokenizer = true;
    if (engine->model) look_at_model(engine->model, &weights, &has_tokenizer);
    if (!weights && spoken->dummy_flag && !word_value(options, spoken->dummy_flag)) {
        engine->command[count++] = (char *)spoken->dummy_flag;
        engine->command[count++] = (char *)spoken->dummy_value;
    }
    if (!has_tokenizer && spoken->tokenizer_flag && !word_value(options, spoken->tokenizer_flag) &&
        !word_value(options, spoken->no_tokenizer_flag)) {
        if (!write_tokenizer(scratch, engine->model, tokenizer, sizeof tokenizer)) {
            fprintf(stderr, "oomsight dryrun: %s: the stub tokenizer cannot be written: %s\n", scratch,
                    strerror(errno));
            return EXIT_INPUT;
        }
        engine->command[count++] = (char *)spoken->tokenizer_flag;
        engine->command[count++] = tokenizer;
    }
    const char *given = word_value(options, spoken->port_flag);
    engine->port = given ? (unsigned)strtoul(given, NULL, 10) : 0;
    if (engine->serves && !given) {
        unsigned const found = spoken->port_flag ? free_port() : 0;
        engine->port = found ? found : spoken->port;
        if (spoken->port_flag) {
            snprintf(port, sizeof port, "%u", engine->port);
            engine->command[count++] = (char *)spoken->port_flag;
            engine->command[count++] = port;
        }
    }
    engine->added = count - options->given->word_count;
    return 0;
}

/* The first folder that `pattern` matches and that holds stand-ins for this CUDA. */
static bool shim_dir_in(const char *pattern, unsigned cuda_major, char *ret_path, size_t capacity)
{
    char whole[800];
    glob_t found = {0};
    bool taken = false;
    snprintf(whole, sizeof whole, "%s/cuda%u", pattern, cuda_major);
    if (glob(whole, 0, NULL, &found) == 0) {
        char *path = realpath(found.gl_pathv[0], NULL);
        taken = path && strlen(path) < capacity;
        if (taken) memcpy(ret_path, path, strlen(path) + 1);
        free(path);
    }
    globfree(&found);
    return taken;
}

/* Where it is said, beside the program in a build tree, a tarball or a Python package, where it was installed. */
bool dryrun_shim_dir(unsigned cuda_major, char *ret_path, size_t capacity)
{
    static const char *const beside[] = {"../shim", "../lib/oomsight", "../stand-ins"};
    char self[512], pattern[600];
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) *slash = '\0';
    const char *named = getenv("OOMSIGHT_SHIM_DIR");
    if (named && shim_dir_in(named, cuda_major, ret_path, capacity)) return true;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(pattern, sizeof pattern, "%s/%s", self, beside[i]);
        if (shim_dir_in(pattern, cuda_major, ret_path, capacity)) return true;
    }
    return shim_dir_in(OOMSIGHT_SHIM_DIR, cuda_major, ret_path, capacity);
}

int dryrun_engine_find(const dryrun_options *options, const oomsight_data *data, const char *scratch,
                       dryrun_engine *ret_engine)
{
    dryrun_engine *engine = ret_engine;
    char path[512];
    if (!find_in_path(options->given->words[0], path, sizeof path)) {
        complain("oomsight dryrun: '%s' is not found: activate the engine's environment, or name its program "
                 "by path",
                 options->given->words[0]);
        return EXIT_INPUT;
    }
    const oomsight_engine_words *spoken = look_at_words(options, engine);
    if (dryrun_interpreter(options->given->words[0], engine->interpreter, sizeof engine->interpreter))
        dryrun_engine_ask(engine);
    if (options->cuda_major) {
        engine->cuda_major = options->cuda_major;
        snprintf(engine->cuda_version, sizeof engine->cuda_version, "%u", options->cuda_major);
    }
    if (!engine->cuda_major) {
        complain("oomsight dryrun: '%s' brings no PyTorch with CUDA; say --cuda 12 or --cuda 13",
                 options->given->words[0]);
        return EXIT_INPUT;
    }
    if (!dryrun_shim_dir(engine->cuda_major, path, sizeof path)) {
        if (access("/proc/self/exe", F_OK) != 0) {
            complain(
                "oomsight dryrun: /proc is not there, and a dry run needs it to find its stub libraries");
            return EXIT_INPUT;
        }
        complain("oomsight dryrun: no stub libraries for CUDA %s; there are some for 12 and 13",
                 engine->cuda_version);
        return EXIT_INPUT;
    }
    return add_words(options, spoken, data, scratch, engine);
}
