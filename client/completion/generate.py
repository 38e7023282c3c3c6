#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a shell's completion of profctl or profd from its own option tables.

generate.py bash|zsh|fish PROGRAM [NAME [PROFD]]: runs `PROGRAM --print-options` and prints the
completion of NAME, profctl if it is not given. PROFD prints the events that it knows everywhere and
the keys of a session; both are offered, and so are the values of keys that take one of a few words,
and events, tracepoints, control groups and units of the host, as far as the user may read them.
What an option's argument is named decides what is offered for it: words separated by bars are
offered as they are, and ",…" behind them means a list of such words; a name that ends in FILE,
FOLDER, DIR or PATH means paths, anything else is for the user to type. What a command's arguments
are named decides the same; SESSION means the sessions of the daemon and SNAPSHOT its snapshots, if
it answers. A program may have no commands.
"""

import re
import subprocess
import sys
from dataclasses import dataclass, field


WORD = re.compile(r"[a-z0-9-]+")
# Such names hold nothing that a shell would take for more than a name.
NAMES = {
    word: f"profctl {verb} --no-legend --no-pager --json=off 2>/dev/null | cut -d' ' -f1"
    for word, verb in (("SESSION", "list"), ("SNAPSHOT", "snapshots"))
}


# A shell expands what it is given, and any user may name a control group.
SAFE = "LC_ALL=C grep -x '[A-Za-z0-9_.:@/-]*'"
GROUPS = "cut -d: -f3- /proc/*/cgroup 2>/dev/null"


@dataclass
class Known:
    """What may follow an option: these words, and those that a command prints."""
    words: list
    command: str = ""
    is_list: bool = True

    def joined(self, substitution):
        return " ".join([*self.words, substitution.format(self.command)] if self.command else self.words)


KNOWN = {
    "--cgroup": Known([], f"{GROUPS} | sort -u | {SAFE}"),
    "--unit": Known([], f"{GROUPS} | grep -oE '[^/]+[.](service|scope|slice)' | sort -u | {SAFE}"),
}


# One a line and file: /sys/bus/event_source/devices/cpu/events/cycles is cpu/cycles/. A file with a
# point in its name says the unit or scale of another.
DEVICES = ("find -L /sys/bus/event_source/devices -mindepth 3 -maxdepth 3 -path '*/events/*' ! -name '*.*' "
           "2>/dev/null | cut -d/ -f6,8 | sed 's,[^/]$,&/,'")
# Values of keys: what a row of the table of keys says in one word each, as "none, zstd, or zstd:1 to zstd:22".
VALUES = {}


def values_of(takes):
    return [word for word in re.split(r", or |, | or ", takes) if re.fullmatch(r"[a-z]+", word)]


def learn(daemon):
    events, keys = (
        subprocess.run([daemon, option], check=True, capture_output=True, text=True).stdout.splitlines()
        for option in ("--print-events", "--print-config-keys")
    )
    folders = "/sys/kernel/tracing/available_events /sys/kernel/debug/tracing/available_events"
    KNOWN["--event"] = Known(events, f"cat {folders} 2>/dev/null | sort -u | {SAFE}; {DEVICES} | {SAFE}")
    VALUES.update({row[1]: values_of(row[3]) for row in map(lambda key: key.split("\t"), keys) if row[0] == "Session"})
    KNOWN["--set"] = Known([f"{key}={value}" for key, values in VALUES.items() for value in ["", *values]],
                           is_list=False)


def names_of(arguments):
    """What prints the names that are meant, or None."""
    found = re.search(r"\b(SESSION|SNAPSHOT)\b", arguments)
    return found and NAMES[found[0]]


@dataclass
class Option:
    short: str
    long: str
    argument: str
    help: str
    command: str = "*"

    @property
    def optional(self):
        return self.argument.startswith("[")

    @property
    def words(self):
        whole = self.argument[1:-1] if self.optional else self.argument.removesuffix(",…")
        words = [re.sub(r"\[.*\]", "", part) for part in whole.split("|")]
        return words if len(words) > 1 and all(WORD.fullmatch(word) for word in words) else []

    @property
    def choices(self):
        return [] if self.argument.endswith(",…") else self.words

    @property
    def listed(self):
        return names_of(self.argument)

    @property
    def is_path(self):
        return re.search(r"(FILE|FOLDER|DIR|PATH)$", self.argument.strip("[]")) is not None

    @property
    def known(self):
        if self.words and not self.choices:
            return Known(self.words)
        return KNOWN.get(self.long) if self.argument else None

    @property
    def names(self):
        return [name for name in (self.short, self.long) if name]


@dataclass
class Command:
    name: str
    arguments: str
    help: str
    options: list = field(default_factory=list)

    @property
    def listed(self):
        return names_of(self.arguments)

    @property
    def choices(self):
        words = [re.sub(r" .*", "", part) for part in self.arguments.split("|")]
        return words if len(words) > 1 and all(WORD.fullmatch(word) for word in words) else []

    @property
    def takes_files(self):
        return re.search(r"FILE|FOLDER|\bIN\b|\bOUT\b", self.arguments) is not None


def read(program):
    """The global options, and the commands with theirs."""
    text = subprocess.run(
        [program, "--print-options"], check=True, capture_output=True, text=True
    ).stdout
    everywhere, commands = [], {}
    for line in text.splitlines():
        name, short, long, argument, words = line.split("\t")
        if name == "*":
            everywhere.append(Option(short, long, argument, words))
        elif not long:
            commands[name] = Command(name, argument, words)
        else:
            commands[name].options.append(Option(short, long, argument, words, name))
    return everywhere, list(commands.values())


# -- bash -------------------------------------------------------------------------------------

BASH = """\
# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for @NAME@, made from its option tables

@LIST@_@NAME@() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev equals='' verb='' words='' i=$COMP_CWORD

    # Colons are words of their own.
    while ((i > 1)) && [[ ${COMP_WORDS[i]} == : || ${COMP_WORDS[i - 1]} == : ]]; do
        ((i--))
    done
    prev=${COMP_WORDS[i - 1]}
    if [[ $cur == = ]]; then
        cur='' equals=y
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[i - 2]} equals=y
    fi
    for ((i = 1; i < COMP_CWORD && ${#verb} == 0; i++)); do
        case ${COMP_WORDS[i]} in
        @VERBS@) verb=${COMP_WORDS[i]} ;;
        esac
    done

    COMPREPLY=()
    case $verb:$prev$equals in
@ARGUMENTS@
    esac

    if [[ $cur == -* ]]; then
        case $verb in
@OPTIONS@
        esac
        mapfile -t COMPREPLY < <(compgen -W "$words @GLOBAL@" -- "$cur")
        [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
        return
    fi
    case $verb in
    "" | help) mapfile -t COMPREPLY < <(compgen -W "@ALL@" -- "$cur") ;;
@WORDS@
    esac
}
complete -F _@NAME@ @NAME@
"""


# The last of a list, of which bash has the part behind the last colon.
BASH_LIST = """\
_@NAME@_list() {
    local word=${COMP_LINE:0:COMP_POINT} head='' colon

    word=${word##*[[:space:]]} word=${word##*=}
    [[ $word == *,* ]] && head=${word%,*},
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${word##*,}")
    colon=${word%"${word##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$colon"}")
}

"""


def bash_argument(verb, option):
    # An argument that may be left out follows an equals sign only.
    marks = ["y"] if option.optional else ["", "y"]
    names = [f"{verb}:{n}{m}" for n in option.names for m in marks if not (m and n == option.short)]
    if not option.argument or not names:
        return ""
    if option.choices:
        action = f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(option.choices)}" -- "$cur")'
    elif option.known and option.known.is_list:
        action = f'_@NAME@_list "{option.known.joined("$({})")}"'
    elif option.known:
        action = ("compopt -o nospace; "
                  f'mapfile -t COMPREPLY < <(compgen -W "{option.known.joined("$({})")}" -- "$cur")')
    elif option.listed:
        action = f'mapfile -t COMPREPLY < <(compgen -W "$({option.listed})" -- "$cur")'
    elif option.is_path:
        action = 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur")'
    else:
        action = ":"
    return f"    {' | '.join(names)})\n        {action}\n        return\n        ;;"


# An equals sign begins a word, so what is in front of it is the key.
def bash_values(verb):
    for key, values in VALUES.items():
        if values:
            yield (f'    {verb}:{key}y)\n        mapfile -t COMPREPLY < <(compgen -W "{" ".join(values)}" -- "$cur")\n'
                   "        return\n        ;;")


def bash_words(words, commands):
    if not commands:
        return ""
    return f"    {' | '.join(commands)})\n" \
           f'        mapfile -t COMPREPLY < <(compgen -W "{words}" -- "$cur")\n        ;;'


def bash_names(options):
    names = []
    for option in options:
        names += [option.short] if option.short else []
        names.append(option.long + ("=" if option.argument and not option.optional else ""))
    return " ".join(names)


def bash(everywhere, commands):
    arguments = [bash_argument("*", option) for option in everywhere]
    for command in commands:
        arguments += [bash_argument(command.name, option) for option in command.options]
        if any(option.long == "--set" for option in command.options):
            arguments += bash_values(command.name)
    options = [
        f'        {c.name}) words="{bash_names(c.options)}" ;;' for c in commands if c.options
    ]
    rows = [bash_words(" ".join(c.choices), [c.name]) for c in commands if c.choices]
    rows += [bash_words(f"$({names})", [c.name for c in commands if c.listed == names])
             for names in NAMES.values()]
    files = " | ".join(c.name for c in commands if c.takes_files)
    rows.append(f"    {files})\n        compopt -o filenames\n"
                '        mapfile -t COMPREPLY < <(compgen -f -- "$cur")\n        ;;' if files else "")
    text = BASH.replace("@VERBS@", " | ".join(c.name for c in commands) or '""')
    text = text.replace("@ARGUMENTS@", "\n".join(a for a in arguments if a))
    text = text.replace("@OPTIONS@", "\n".join(options))
    text = text.replace("@GLOBAL@", bash_names(everywhere))
    text = text.replace("@ALL@", " ".join(c.name for c in commands))
    text = text.replace("@LIST@", BASH_LIST if "_@NAME@_list" in text else "")
    return text.replace("@WORDS@", "\n".join(row for row in rows if row))


# -- zsh --------------------------------------------------------------------------------------

ZSH = """\
#compdef @NAME@
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion for @NAME@, made from its option tables

_@NAME@() {
    local curcontext=$curcontext state line
    local -a everywhere commands
    everywhere=(
@GLOBAL@
    )
    commands=(
@COMMANDS@
    )

    _arguments -C -s -S $everywhere '1: :->command' '*:: :->arguments'
    case $state in
    command)
        _describe -t commands command commands
        ;;
    arguments)
        case $words[1] in
        help)
            _describe -t commands command commands
            ;;
@VERBS@
        esac
        ;;
    esac
}

_@NAME@ "$@"
"""


# Within single quotes.
def zsh_names(names):
    return "($(" + names.replace("'", "'\\''") + "))"


def zsh_known(known):
    words = known.joined("$({})").replace("'", "'\\''").replace(":", "\\:")
    return f"{{_sequence compadd - {words}}}" if known.is_list else f'{{compadd -S "" - {words}}}'


def zsh_quote(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_specs(option, indent):
    if option.choices:
        action = "(" + " ".join(option.choices) + ")"
    elif option.known:
        action = zsh_known(option.known)
    elif option.listed:
        action = zsh_names(option.listed)
    elif option.is_path:
        action = "_files"
    else:
        action = " "
    is_list = option.words and not option.choices
    message = option.long[2:] if is_list else zsh_quote(option.argument.strip("[]"))
    tail = f":{message}:{action}" if option.argument else ""
    tail = ":" + tail if option.optional else tail
    group = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    words = zsh_quote(option.help)
    lines = []
    if option.short and option.optional:
        lines.append(f"'{group}{option.short}[{words}]'")
    elif option.short:
        lines.append(f"'{group}{option.short}{'+' if tail else ''}[{words}]{tail}'")
    mark = "=-" if option.optional else "=" if option.argument else ""
    lines.append(f"'{group}{option.long}{mark}[{words}]{tail}'")
    return "\n".join(indent + line for line in lines)


# Without commands.
ZSH_PLAIN = """\
#compdef @NAME@
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion for @NAME@, made from its option table

_arguments -s -S \\
@GLOBAL@
"""


def zsh(everywhere, commands):
    if not commands:
        specs = [zsh_specs(option, "    ") for option in everywhere]
        return ZSH_PLAIN.replace("@GLOBAL@", " \\\n".join(specs))
    verbs = []
    for command in commands:
        if command.name == "help":
            continue
        specs = [zsh_specs(option, " " * 16) for option in command.options]
        specs += [" " * 16 + "'*: :_files'"] if command.takes_files else []
        specs += [" " * 16 + f"': :({' '.join(command.choices)})'"] if command.choices else []
        specs += [" " * 16 + f"'*: :{zsh_names(command.listed)}'"] if command.listed else []
        body = " \\\n".join([" " * 12 + "_arguments -s -S $everywhere"]
                            + [line for spec in specs for line in spec.splitlines()])
        verbs.append(f"        {command.name})\n{body}\n            ;;")
    rows = [f"        '{zsh_quote(c.name)}:{zsh_quote(c.help)}'" for c in commands]
    text = ZSH.replace("@GLOBAL@", "\n".join(zsh_specs(o, " " * 8) for o in everywhere))
    text = text.replace("@COMMANDS@", "\n".join(rows))
    return text.replace("@VERBS@", "\n".join(verbs))


# -- fish -------------------------------------------------------------------------------------


def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(option, condition):
    line = "complete -c @NAME@" + (f" -n {fish_quote(condition)}" if condition else "")
    line += f" -s {option.short[1:]}" if option.short else ""
    line += f" -l {option.long[2:]}"
    if option.choices:
        line += f" {'-f' if option.optional else '-x'} -a {fish_quote(' '.join(option.choices))}"
    elif option.known:
        words = option.known.joined("({})")
        line += f" -x -a {fish_quote(f'(__fish_append , {words})' if option.known.is_list else words)}"
    elif option.listed:
        line += f" -x -a {fish_quote(f'({option.listed})')}"
    elif option.is_path:
        line += " -r -F"
    elif option.argument:
        line += " -x"
    return line + f" -d {fish_quote(option.help)}"


def fish(everywhere, commands):
    names = " ".join(c.name for c in commands)
    before = f"not __fish_seen_subcommand_from {names}"
    lines = [
        "# SPDX-License-Identifier: LGPL-2.1-or-later",
        "# fish completion for @NAME@, made from its option tables",
        "complete -c @NAME@ -f",
    ]
    lines += [fish_option(option, None) for option in everywhere]
    for command in commands:
        within = f"__fish_seen_subcommand_from {command.name}"
        lines.append(
            f"complete -c @NAME@ -n {fish_quote(before)} -a {command.name}"
            f" -d {fish_quote(command.help)}"
        )
        lines += [fish_option(option, within) for option in command.options]
        if command.takes_files:
            lines.append(f"complete -c @NAME@ -n {fish_quote(within)} -F")
        if command.choices:
            words = " ".join(command.choices)
            lines.append(f"complete -c @NAME@ -n {fish_quote(within)} -a {fish_quote(words)}")
        if command.listed:
            words = fish_quote(f"({command.listed})")
            lines.append(f"complete -c @NAME@ -n {fish_quote(within)} -a {words}")
        if command.name == "help":
            lines.append(f"complete -c @NAME@ -n {fish_quote(within)} -a {fish_quote(names)}")
    return "\n".join(lines) + "\n"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def main():
    if len(sys.argv) not in (3, 4, 5) or sys.argv[1] not in SHELLS:
        sys.exit("usage: generate.py bash|zsh|fish PROGRAM [NAME [PROFD]]")
    if len(sys.argv) > 4:
        learn(sys.argv[4])
    name = sys.argv[3] if len(sys.argv) > 3 else "profctl"
    print(SHELLS[sys.argv[1]](*read(sys.argv[2])).replace("@NAME@", name), end="")


if __name__ == "__main__":
    main()
