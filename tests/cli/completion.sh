# The scripts are complete: every option of every help text is offered, bash takes the script, and what could stand next is known.
PATH=$(dirname "$OOMSIGHT"):$PATH
for command in plan explain replay dryrun run top check matrix bisect; do
    "$OOMSIGHT" $command --help | grep -oE -- '^  --[a-z][a-z-]+|, --[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u | while read -r option; do
        "$OOMSIGHT" completion words $command "$option" | grep -qxF -- "$option" || echo "$command: $option is not offered"
    done
done
"$OOMSIGHT" completion bash >"${TMPDIR:-/tmp}/oomsight-completion.$$" && bash -c '. "$0"
    next() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _oomsight; echo "${COMPREPLY[@]}"; }
    next oomsight pl
    next oomsight plan --max
    next oomsight plan --format h
    next oomsight check --format ""
    next oomsight plan --gpu 409
    next oomsight plan --gpu 4090 --vllm 0.31
    next oomsight matrix --diff 0.31.0 0.31
    next oomsight plan --gpu 4090 -- vllm serve model --max-model
    next oomsight kb l
    next oomsight kb phases kv_' "${TMPDIR:-/tmp}/oomsight-completion.$$"
rm -f "${TMPDIR:-/tmp}/oomsight-completion.$$"
"$OOMSIGHT" completion zsh | head -n 1
"$OOMSIGHT" completion fish | grep -c 'complete -c oomsight'
"$OOMSIGHT" completion tcsh; echo "exit $?"
