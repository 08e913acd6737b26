# Completes `prowess` in bash, which asks the program at every Tab what a word can become.
_prowess() {
    # Bash takes words apart at `=` and `:`; the program is asked for whole ones, without quotes.
    local line=${COMP_LINE:0:COMP_POINT} words=() word blank at
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        blank=${line%%[![:blank:]]*}
        line=${line:${#blank}}
        line=${line#"$word"}
        [[ $at == "$COMP_CWORD" && $word != [=:]* ]] && word=$2
        word=${word//[\\\"\']/}
        if [[ $at == 0 || -n $blank ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
    done
    # Of the word at the cursor, bash puts in only what stands behind the last of these signs.
    local last=$((${#words[@]} - 1)) typed=${2//[\\\"\']/}
    local before=${words[last]%"$typed"}
    local IFS=$'\v'
    read -r -d '' -a COMPREPLY < <(
        PROWESS_COMPLETE=bash _CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$last prowess -- "${words[@]}" 2>/dev/null
    )
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    # What is taken for files is put in so that blanks and the like do not end the word.
    if [[ ${COMPREPLY[*]} == *[[:blank:]$'\n'\'\"\\\$\`\&\;\|\<\>\(\)\{\}\*\?\[\!#~]* ]]; then
        compopt -o filenames
        COMPREPLY=("${COMPREPLY[@]%/}")
    fi
    [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *[=/:] ]] && compopt -o nospace
    return 0
}
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
    complete -o bashdefault -o nosort -F _prowess prowess
else
    complete -o bashdefault -F _prowess prowess
fi
