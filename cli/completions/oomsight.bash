_oomsight() {
    local IFS=$'\n'
    COMPREPLY=($(oomsight completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _oomsight oomsight
