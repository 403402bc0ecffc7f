# bash completion of weber: commands from `weber --help`, options from `weber COMMAND --help`, else names of files.
_weber() {
    local tool=${COMP_WORDS[0]} command=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} words=
    if [ "$COMP_CWORD" = 1 ]; then
        words=$("$tool" --help 2>/dev/null | sed -nE 's/^(usage:|      ) weber (-?-?[a-z]+).*/\2/p')
    elif [[ $word = -* ]]; then
        words=$("$tool" "$command" --help 2>/dev/null | sed -nE 's/^  (--[a-z-]+=?).*/\1/p')
    fi
    # shellcheck disable=SC2207  # no word has a blank
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _weber weber
