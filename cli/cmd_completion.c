/* oomsight completion: a script for the shell, made from one table. tests/cli/completion.sh compares the table with the help
 * texts, so that an option cannot be forgotten. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#define OUTPUT "--json --format --output --color --ascii --lang --verbose --explain --data --help"

static const struct {
    const char *command, *options;
} table[] = {
    {"plan", "--gpu --gpu-total --gpu-used --gpu-cc --engine --vllm --env --offline --insecure --host-ram "
             "--max-fit --null "
             "--strict " OUTPUT},
    {"explain", "--follow --idle --state --metrics --metrics-file --max-files --hub --insecure --gpu --model "
                "--vllm " OUTPUT},
    {"replay", "--settings --try --no-what-if --smallest --torch --gpu-total --gpu-used --device "
               "--pool-backend --sweep "
               "--events " OUTPUT},
    {"dryrun", "--gpu --gpu-total --gpu-used --slice --gpu-cc --outside --load --serve --until "
               "--trace --snapshot --cuda --warm "
               "--timeout --quiet " OUTPUT},
    {"run", "--budget --unified --report --quiet --selftest --color --ascii --lang --help"},
    {"top", "--once --every --json --color --ascii --lang --help"},
    {"check", "--gpu --gpu-total --gpu-used --gpu-cc --vllm --models --strict --offline --insecure " OUTPUT},
    {"matrix", "--diff --moved --models --offline --insecure --mode --threads --points --cache --no-cache "
               "--engine --jobs "
               "--retries --timeout --under --logs --ray --python --quiet " OUTPUT},
    {"bisect", "--good --bad --moved --dryrun --engine --timeout --gpu --gpu-total --gpu-used --gpu-cc --env "
               "--offline --insecure " OUTPUT},
    {"doctor", "--measure --device --timeout " OUTPUT},
    {"gpus", OUTPUT},
    {"engines", OUTPUT},
    {"redact", OUTPUT},
    {"kb", "list show lint test " OUTPUT},
    {"completion", "bash zsh fish"},
};
enum { COUNT = sizeof table / sizeof *table };

/* Options whose value is one of a few words. */
static const struct {
    const char *option, *words;
} values[] = {
    {"--format", "text json md html github sarif junit"},
    {"--color", "auto always never"},
    {"--lang", "en zh"},
    {"--cuda", "12 13"},
    {"--mode", "plan dryrun"},
    {"--pool-backend", "driver clean sticky"},
};
enum { VALUES = sizeof values / sizeof *values };

static const char *values_of(const char *option)
{
    for (size_t i = 0; i < VALUES; i++)
        if (strcmp(values[i].option, option) == 0) return values[i].words;
    return NULL;
}

static void put_commands(void)
{
    for (size_t i = 0; i < COUNT; i++) printf("%s%s", i ? " " : "", table[i].command);
}

/* Behind `--` stands another command: there files are offered, as for any word that is not an option. */
static void put_bash(void)
{
    fputs("_oomsight() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i options=\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do [[ ${COMP_WORDS[i]} == -- ]] && return; done\n"
          "    if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"",
          stdout);
    put_commands();
    fputs(" help version\" -- \"$word\")); return; fi\n"
          "    case $before in\n",
          stdout);
    for (size_t i = 0; i < VALUES; i++)
        printf("        %s) options='%s' ;;\n", values[i].option, values[i].words);
    fputs("    esac\n"
          "    if [[ -n $options ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$word\")); return; fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          stdout);
    for (size_t i = 0; i < COUNT; i++)
        printf("        %s) options='%s' ;;\n", table[i].command, table[i].options);
    fputs("    esac\n"
          "    [[ $word == -* || ${COMP_WORDS[1]} == completion ]] && COMPREPLY=($(compgen -W \"$options\" "
          "-- \"$word\"))\n"
          "}\n"
          "complete -o default -F _oomsight oomsight\n",
          stdout);
}

static void put_zsh(void)
{
    fputs("#compdef oomsight\n_oomsight() {\n    local -a options\n    if ((CURRENT == 2)); then compadd ",
          stdout);
    put_commands();
    fputs(" help version; return; fi\n"
          "    if ((${words[(I)--]} && ${words[(I)--]} < CURRENT)); then _files; return; fi\n"
          "    case $words[CURRENT-1] in\n",
          stdout);
    for (size_t i = 0; i < VALUES; i++)
        printf("        %s) compadd %s; return ;;\n", values[i].option, values[i].words);
    fputs("    esac\n"
          "    case $words[2] in\n",
          stdout);
    for (size_t i = 0; i < COUNT; i++)
        printf("        %s) options=(%s) ;;\n", table[i].command, table[i].options);
    fputs("    esac\n"
          "    if [[ $words[CURRENT] == -* || $words[2] == completion ]]; then compadd -- $options; else "
          "_files; fi\n"
          "}\n"
          "if [[ $funcstack[1] == _oomsight ]]; then _oomsight \"$@\"; else compdef _oomsight oomsight; fi\n",
          stdout);
}

static void put_fish(void)
{
    fputs("complete -c oomsight -n __fish_use_subcommand -f -a '", stdout);
    put_commands();
    fputs(" help version'\n", stdout);
    for (size_t i = 0; i < COUNT; i++) {
        char words[512];
        snprintf(words, sizeof words, "%s", table[i].options);
        for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
            bool const option = strncmp(word, "--", 2) == 0;
            const char *const choice = values_of(word);
            printf("complete -c oomsight -n '__fish_seen_subcommand_from %s' %s %s", table[i].command,
                   option ? "-l" : "-f -a", option ? word + 2 : word);
            if (choice) printf(" -x -a '%s'", choice);
            putchar('\n');
        }
    }
}

int cmd_completion(int argc, char **argv)
{
    const char *shell = argc == 1 ? argv[0] : "";
    if (strcmp(shell, "--help") == 0 || strcmp(shell, "-h") == 0)
        fputs("usage: oomsight completion bash|zsh|fish\n\n"
              "Prints a script for the shell, for example: source <(oomsight completion bash)\n",
              stdout);
    else if (strcmp(shell, "bash") == 0)
        put_bash();
    else if (strcmp(shell, "zsh") == 0)
        put_zsh();
    else if (strcmp(shell, "fish") == 0)
        put_fish();
    else {
        fputs("oomsight completion: for which shell? bash, zsh or fish\n", stderr);
        return EXIT_USAGE;
    }
    return EXIT_FITS;
}
