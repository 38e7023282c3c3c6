# SPDX-License-Identifier: LGPL-2.1-or-later
#
# offered.zsh FOLDER < LINES: what zsh offers behind each of the lines, with the completions of
# FOLDER, each followed by a line with '='. A zsh on a terminal of its own is typed to; what its
# completion would show goes to a file instead.
zmodload zsh/zpty || exit 1
export CAPTURED=$(mktemp)
trap 'rm -f $CAPTURED' EXIT
zpty -b shell zsh -f -i
zpty -w shell "PROMPT=; unsetopt zle_bracketed_paste 2>/dev/null; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D
compadd() {
    [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]] && { builtin compadd \"\$@\"; return }
    local -a hits
    builtin compadd -A hits \"\$@\"
    (( \$#hits )) && print -rl -- \$hits >>\$CAPTURED
    return 1
}
capture() { _main_complete; compstate[insert]= compstate[list]=; print = >>\$CAPTURED; }
zle -C capture complete-word capture
bindkey '^G' capture; bindkey '^U' kill-whole-line
print READY >>\$CAPTURED"
while ! grep -q READY $CAPTURED; do sleep 0.02; done
: >$CAPTURED
n=0
while IFS= read -r line; do
    zpty -n -w shell $'\C-U'"$line"$'\C-G'
    (( n++ ))
    while [[ $(grep -c '^=$' $CAPTURED) -lt $n ]]; do sleep 0.01; zpty -r -t shell >/dev/null; done
done
cat $CAPTURED
zpty -d shell
