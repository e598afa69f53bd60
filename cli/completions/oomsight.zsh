#compdef oomsight
_oomsight() {
    local -a offered
    offered=(${(f)"$(oomsight completion words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (($#offered)); then compadd -- $offered; else _files; fi
}
if [[ $funcstack[1] == _oomsight ]]; then _oomsight "$@"; else compdef _oomsight oomsight; fi
