#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Man page, completions and --help of profctl against its own tables.

`profctl --print-options` prints a row for each command (name, nothing, nothing, arguments, help)
and for each option (command or *, short, long, argument, help). Every one must be in each of the
other places, and what these name must be a row.
"""

import contextlib
import os
import re
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

from tree import BUILD, SOURCE, files, need, none, read
from tap import check, main, skip, test

PROFCTL = str(BUILD / "client" / "profctl")
PAGE = "doc/profctl.1"
COMPLETIONS = {
    "bash": BUILD / "client/completion/profctl.bash",
    "zsh": BUILD / "client/completion/_profctl",
    "fish": BUILD / "client/completion/profctl.fish",
}

# Completions ask the profctl that is found first.
os.environ["PATH"] = f"{BUILD}/client:{os.environ['PATH']}"

Row = namedtuple("Row", "command short long argument help")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows():
    printed = run(PROFCTL, "--print-options")
    for line in printed.stdout.splitlines():
        row = Row(*line.split("\t"))
        yield row._replace(short=row.short.lstrip("-"), long=row.long.lstrip("-"))


def is_command(row):
    return not row.short and not row.long


def incomplete(table):
    if not any(row.command == "help" and is_command(row) for row in table):
        yield "profctl --print-options does not list the command 'help'"
    for row in table:
        if not row.help:
            yield f"{row.command} {row.long}: has no help"


def says(text, option):
    """Whether the words hold --option as a whole."""
    return re.search(rf"(?<![\w-])--{re.escape(option)}(?![\w-])", text) is not None


def unhelpful(table):
    for row in table:
        command = [PROFCTL, "--help"] if row.command == "*" else [PROFCTL, row.command, "--help"]
        said = run(*command)
        if said.returncode != 0:
            yield f"{' '.join(command[1:])} ends with status {said.returncode}"
        elif row.long and not says(said.stdout, row.long):
            yield f"{' '.join(command[1:])} does not name --{row.long}"
        elif row.short and f"-{row.short}" not in said.stdout:
            yield f"{' '.join(command[1:])} does not name -{row.short}"
        elif row.help.split("\n")[0] not in re.sub(r"\s+", " ", said.stdout):
            yield f"{' '.join(command[1:])} does not say: {row.help}"


def parts_of_page(page, commands):
    """The page's text by command: what follows `.It Cm name` or `.Ss name` up to the next; all
    else is under *."""
    parts, command = {"*": ""}, "*"
    for line in page.splitlines():
        match = re.match(r"\.(?:Ss|It Cm|It Ic)\s+(\w[\w-]*)", line)
        if line.startswith(".Sh"):
            command = "*"
        elif match and match[1] in commands:
            command = match[1]
            parts.setdefault(command, "")
        parts[command] += line + "\n"
    return parts


def options_of_page(part):
    """-x and --word as mdoc writes them: `Fl x`, `Fl -word` (`\\-` allowed)."""
    return set(re.findall(r"\bFl\s+((?:\\?-)?[\w][\w\\-]*)", part.replace("\\-", "-")))


def missing_in_page(table, parts):
    for row in table:
        if is_command(row):
            if row.command not in parts:
                yield f"{PAGE} has no section on the command '{row.command}'"
            continue
        named = options_of_page(parts.get(row.command, ""))
        if row.long and f"-{row.long}" not in named:
            yield f"{PAGE} does not name {row.command} --{row.long}"
        if row.short and row.short not in named:
            yield f"{PAGE} does not name {row.command} -{row.short}"


def invented_by_page(table, parts):
    for command, part in parts.items():
        # The synopsis stands before any command and may name the options of all.
        rows_here = [row for row in table if row.command in (command, "*") or command == "*"]
        known = {f"-{row.long}" for row in rows_here if row.long}
        known |= {row.short for row in rows_here}
        for option in sorted(options_of_page(part) - known):
            yield f"{PAGE} names -{option} under '{command}', which profctl does not know"


def missing_in_completion(shell, table):
    text = read(COMPLETIONS[shell])
    for row in table:
        if is_command(row):
            if not re.search(rf"(?<![\w-]){re.escape(row.command)}(?![\w-])", text):
                yield f"{shell} does not know the command '{row.command}'"
        elif shell == "fish":
            if not re.search(rf"-l\s+'?{re.escape(row.long)}(?![\w-])", text):
                yield f"{shell} does not know {row.command} --{row.long}"
        elif not says(text, row.long):
            yield f"{shell} does not know {row.command} --{row.long}"


def invented_by_completion(shell, table):
    text = re.sub(r"(?m)^\s*#.*$", "", read(COMPLETIONS[shell]))
    pattern = r"-l\s+'?([a-z][\w-]+)" if shell == "fish" else r"(?<![\w-])--([a-z][\w-]+)"
    known = {row.long for row in table} | {"print-options"}
    # In bash's cases an option stands with a y where its word follows an equals sign.
    known |= {f"{row.long}y" for row in table if shell == "bash"}
    for word in sorted(set(re.findall(pattern, text)) - known):
        yield f"{shell} knows --{word}, which profctl does not"


def offered_by_bash(*words):
    """The words that bash offers for the last word, by calling the completion as bash would."""
    script = (
        f'source "{COMPLETIONS["bash"]}"; '
        'COMP_WORDS=(profctl "$@"); COMP_CWORD=$#; COMP_LINE="profctl $*"; '
        'COMP_POINT=${#COMP_LINE}; COMPREPLY=(); '
        'f=$(complete -p profctl | sed -n "s/.*-F \\([^ ]*\\).*/\\1/p"); '
        '"$f" profctl "${!#}" profctl; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    said = run("bash", "-c", script, "bash", *words)
    return {line.rstrip(" =") for line in said.stdout.splitlines()}


def offered_by_fish(*words):
    line = " ".join(("profctl", *words))
    # In a home of its own, since fish leaves folders there.
    with tempfile.TemporaryDirectory(prefix="profd-test.") as home:
        said = run("env", f"HOME={home}", "fish", "--no-config", "-c",
                   f"source {COMPLETIONS['fish']}; complete --do-complete '{line}'")
    return {line.split("\t")[0].rstrip("=") for line in said.stdout.splitlines()}


def offered_by_zsh(lines):
    """The words that zsh offers behind each of these lines, by typing them to it."""
    with tempfile.TemporaryDirectory(prefix="profd-test.") as home:
        said = subprocess.run(
            ["zsh", "-f", str(Path(__file__).with_name("offered.zsh")), str(COMPLETIONS["zsh"].parent)],
            input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, check=False,
            timeout=100, env={**os.environ, "HOME": home, "TMPDIR": home, "TERM": "dumb"})
    answers = re.split(r"(?m)^=\n", said.stdout)
    check(len(answers) == len(lines) + 1, f"zsh answered {len(answers) - 1} of {len(lines)} lines: "
                                          f"{said.stderr[-500:]}")
    return {line: set(answer.split()) for line, answer in zip(lines, answers)}


def completed(offered, table):
    commands = {row.command for row in table if is_command(row)}
    for command in sorted(commands - offered("")):
        yield f"the command '{command}' is not offered"
    for command in sorted(commands):
        wanted = {f"--{row.long}" for row in table if row.command == command and row.long}
        for option in sorted(wanted - offered(command, "--")):
            yield f"{command} {option} is not offered"


TABLE = list(rows())


def parts():
    return parts_of_page(read(PAGE), {row.command for row in TABLE})


@test
def profctl_prints_its_tables():
    none(incomplete(TABLE))


@test
def help_names_every_option():
    none(unhelpful(TABLE))


@test
def the_page_names_every_command_and_option():
    none(missing_in_page(TABLE, parts()))


@test
def the_page_names_no_unknown_command_or_option():
    none(invented_by_page(TABLE, parts()))


@test
def profctl_names_the_group_that_a_method_needs():
    rights = dict(re.findall(r'\{ "(\w+)", +RIGHT_(\w+),', read("daemon/method/method.c")))
    named = re.search(r"readers\[\] = \{(.*?)\};", read("client/remote/remote-error.c"), re.S).group(1)
    check(rights, "the table of methods has no row")
    wrong = {method for method, right in rights.items() if right == "READ"} ^ set(re.findall(r'"(\w+)"', named))
    none(sorted(f"{method}: another group is named than the one that may call it" for method in wrong if rights.get(method) != "ANYONE"))


@test
def the_pages_pass_mandoc():
    need("mandoc")
    pages = [str(path) for path in files(".1", ".5", ".7", ".8", below=("doc",))]
    said = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], cwd=SOURCE,
                          capture_output=True, text=True, check=False)
    none((said.stdout + said.stderr).splitlines())


@test
def completions_contain_every_command_and_option():
    for shell in COMPLETIONS:
        none(missing_in_completion(shell, TABLE))


@test
def completions_contain_nothing_else():
    for shell in COMPLETIONS:
        none(invented_by_completion(shell, TABLE))


@test
def bash_offers_every_command_and_option():
    none(completed(offered_by_bash, TABLE))


@test
def fish_offers_every_command_and_option():
    need("fish")
    none(completed(offered_by_fish, TABLE))


# The typed line, and the words that have to be offered for its last one.
ARGUMENTS = [
    (("start", "x", "-e", "cpu-cl"), "cpu-clock"),
    (("start", "x", "-e", "cycles,page-fau"), "cycles,page-faults"),
    (("start", "x", "-e", "L1-dcache-load-m"), "L1-dcache-load-misses"),
    (("start", "x", "--set", "Buffer"), "BufferSize"),
    (("start", "x", "--set", "Layout=d"), "Layout=directory"),
    (("start", "x", "--set", "ExcludeIdle="), "ExcludeIdle=no"),
    (("start", "x", "--set", "RotateIntervalSec=inf"), "RotateIntervalSec=infinity"),
    (("snapshot", "--cgroup", "/"), "/"),
    (("monitor", "-e", "rota"), "rotated"),
    (("monitor", "--event", "lost,deg"), "lost,degraded"),
]


def arguments():
    """The tables of commands that exist: this file is held against tables of other programs, too."""
    commands = {row.command for row in TABLE}
    return [(words, wanted) for words, wanted in ARGUMENTS if words[0] in commands]


def not_completed(offered):
    for words, wanted in arguments():
        got = {word.rstrip("=") for word in offered(*words)}
        if wanted not in got:
            yield f"'{' '.join(words)}' is not completed to '{wanted}' but to {sorted(got)[:5]}"


@test
def bash_offers_events_keys_and_control_groups():
    none(not_completed(offered_by_bash))


@test
def bash_offers_values_after_the_equals_sign_of_a_key():
    if not arguments():
        skip("the program has no keys")
    for words, wanted in ((("--set", "Compress", "="), {"none", "zstd"}),
                          (("--set", "=", "Layout", "=", "f"), {"file"}),
                          (("--set", "BufferSize", "="), {""})):
        got = offered_by_bash("start", "x", *words)
        check(got == wanted, f"'{' '.join(words)}' is completed to {sorted(got)}, not to {sorted(wanted)}")


@contextlib.contextmanager
def found_first(name, script):
    """A program of this name hides all others."""
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        path = Path(folder, name)
        path.write_text(f"#!/bin/sh\n{script}", encoding="ascii")
        path.chmod(0o755)
        before, os.environ["PATH"] = os.environ["PATH"], f"{folder}:{os.environ['PATH']}"
        try:
            yield
        finally:
            os.environ["PATH"] = before


# Programs that print what a host has, what is typed there, and what has to be offered for it.
HOSTS = [
    ("find", [f"/sys/bus/event_source/devices/cpu/events/{name}" for name in ("mem-loads", "slots")],
     ("start", "x", "-e", "cpu/mem"), "cpu/mem-loads/"),
    ("cut", ["/", "/system.slice/shop.service", "/payload/web.slice/web@1.service/workers"],
     ("start", "x", "-u", "web"), "web@1.service"),
    ("cut", ["/", "/system.slice/shop.service", "/payload/web.slice/web@1.service/workers"],
     ("snapshot", "-u", "sh"), "shop.service"),
]


@test
def every_shell_offers_the_events_of_devices_and_the_units_of_the_host():
    if not arguments():
        skip("the program has no events")
    need("fish")
    need("zsh")
    for program, prints, words, wanted in HOSTS:
        with found_first(program, "".join(f"echo '{line}'\n" for line in prints)):
            line = " ".join(("profctl", *words))
            offered = {"bash": offered_by_bash(*words), "fish": offered_by_fish(*words),
                       "zsh": offered_by_zsh([line])[line]}
        none(f"{shell} offers {sorted(got)[:5]} for '{line}'" for shell, got in offered.items() if wanted not in got)


SESSIONS_AND_SNAPSHOTS = """[ "$1" = list ] && printf 'default active\\nweb paused\\n'
[ "$1" = snapshots ] && printf '20261121T150000Z default\\nkeep-it web\\n'
"""
# The typed line, and all that is offered behind it.
NAMES = [
    (("stop", ""), {"default", "web"}),
    (("start", "d"), {"default"}),
    (("monitor", "default", "w"), {"web"}),
    (("rm", ""), {"20261121T150000Z", "keep-it"}),
    (("pin", "k"), {"keep-it"}),
    (("show-snapshot", "2"), {"20261121T150000Z"}),
    (("pin", "keep-it", ""), {"20261121T150000Z", "keep-it"}),
    (("snapshot", "-s", "w"), {"web"}),
    (("snapshot", "--session", "w"), {"web"}),
]


@test
def every_shell_offers_the_sessions_and_snapshots_of_the_daemon():
    commands = {row.command for row in TABLE}
    rows_here = [(words, wanted) for words, wanted in NAMES if words[0] in commands]
    need("fish")
    need("zsh")
    with found_first("profctl", SESSIONS_AND_SNAPSHOTS):
        lines = [" ".join(("profctl", *words)) for words, _ in rows_here]
        of_zsh = offered_by_zsh(lines)
        offered = {"bash": [offered_by_bash(*words) for words, _ in rows_here],
                   "fish": [offered_by_fish(*words) for words, _ in rows_here],
                   "zsh": [of_zsh[line] for line in lines]}
    none(f"{shell} offers {sorted(got)[:5]} for '{line}', not {sorted(wanted)}" for shell, of_shell in offered.items()
         for line, got, (_, wanted) in zip(lines, of_shell, rows_here) if got != wanted)


@test
def fish_offers_events_keys_and_control_groups():
    need("fish")
    none(not_completed(offered_by_fish))


@test
def bash_completes_after_a_colon_and_a_comma():
    if not arguments():
        skip("the program has no lists")
    for line, known, wanted in (("-e sched:sched_s", "sched:sched_switch sched:sched_wakeup", "sched_switch"),
                                ("-e cycles,ins", "cycles instructions", "cycles,instructions"),
                                ("--event=cycles,sched:", "sched:a irq:b", "a")):
        script = (f'source "{COMPLETIONS["bash"]}"; COMP_LINE="profctl start x {line}"; '
                  f'COMP_POINT=${{#COMP_LINE}}; _profctl_list "{known}"; echo "${{COMPREPLY[@]}}"')
        said = run("bash", "-c", script).stdout.strip()
        check(said == wanted, f"'{line}' is continued by '{said}', not by '{wanted}'")
    words = ("start", "x", "--event", "sched", ":", "sched_s")
    script = (f'source "{COMPLETIONS["bash"]}"; _profctl_list() {{ echo asked; }}; COMP_WORDS=(profctl "$@"); '
              'COMP_CWORD=$#; _profctl')
    check(run("bash", "-c", script, "bash", *words).stdout == "asked\n", "a colon hides the option in front")


@test
def zsh_offers_events_keys_and_control_groups():
    need("zsh")
    answers = offered_by_zsh([" ".join(("profctl", *words)) for words, _ in arguments()])
    # It shows the part behind a comma alone.
    none(f"'{' '.join(words)}' is not completed to '{wanted}'" for words, wanted in arguments()
         if wanted.rsplit(",", 1)[-1] not in
         {word.rstrip("=") for word in answers[" ".join(("profctl", *words))]})


@test
def zsh_can_parse_its_completion():
    need("zsh")
    said = run("zsh", "-n", str(COMPLETIONS["zsh"]))
    none((said.stdout + said.stderr).splitlines())


@test
def zsh_offers_every_command_and_option():
    need("zsh")
    commands = sorted({row.command for row in TABLE if is_command(row)} - {"help"})
    asked = {"profctl ", *(f"profctl {command} --" for command in commands)}
    answers = offered_by_zsh(sorted(asked))

    def offered(*words):
        return answers.get(" ".join(("profctl", *words)), set())
    none(completed(offered, [row for row in TABLE if row.command != "help"]))


if __name__ == "__main__":
    main()
