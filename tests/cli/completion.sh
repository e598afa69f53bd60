# The scripts are complete: every option of every help text is offered, and bash takes the script.
for command in plan explain replay dryrun check matrix bisect; do
    "$OOMSIGHT" $command --help | grep -oE -- '--[a-z][a-z-]+' | sort -u | while read -r option; do
        "$OOMSIGHT" completion bash | grep -E "^ +$command\)" | grep -qE -- "$option( |')" || echo "$command: $option is not offered"
    done
done
"$OOMSIGHT" completion bash >"${TMPDIR:-/tmp}/oomsight-completion.$$" && bash -c '. "$0"; COMP_WORDS=(oomsight pl); COMP_CWORD=1; _oomsight; echo "${COMPREPLY[@]}"
    COMP_WORDS=(oomsight plan --max); COMP_CWORD=2; _oomsight; echo "${COMPREPLY[@]}"
    COMP_WORDS=(oomsight plan --format h); COMP_CWORD=3; _oomsight; echo "${COMPREPLY[@]}"' "${TMPDIR:-/tmp}/oomsight-completion.$$"
rm -f "${TMPDIR:-/tmp}/oomsight-completion.$$"
"$OOMSIGHT" completion zsh | head -n 1
# Every shell offers the same words as values.
for option in format color lang cuda pool-backend; do
    words=$("$OOMSIGHT" completion bash | sed -n "s/^ *--$option) options='\(.*\)' ;;/\1/p")
    [ -n "$words" ] && "$OOMSIGHT" completion zsh | grep -qF -- "--$option) compadd $words; return" || echo "zsh: no values of --$option"
    "$OOMSIGHT" completion fish | grep -qF -- "-l $option -x -a '$words'" || echo "fish: no values of --$option"
done
"$OOMSIGHT" completion fish | grep -c 'seen_subcommand_from plan'
"$OOMSIGHT" completion tcsh; echo "exit $?"
