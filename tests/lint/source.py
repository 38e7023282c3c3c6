#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How the text of the sources looks: licence lines, essays, layout, lengths, words to avoid."""

import re
import shutil
import subprocess
from pathlib import Path

from tree import SOURCE, files, none, read, sources
from tap import main, skip, test

LICENCE = "SPDX-License-Identifier: LGPL-2.1-or-later"
ESSAY_WORDS = 12
LONG_FUNCTION, TOO_LONG_FUNCTION = 60, 100
LONG_FILE = 700
FORMAT_VERSION = "14"
PAGES = {"ARCHITECTURE.md": 200, "HACKING.md": 120}

C_FILES = files(".c", ".h", below=("lib", "daemon", "gateway", "client", "tests"))
# Of these only the first lines are looked at; data that tests read carries no licence line.
LICENSED = files(".c", ".h", ".py", ".sh", ".build", ".bash", ".fish", ".zsh", ".1", ".5",
                 ".7", ".8")

# Comments and literals, so that what they hold is not taken for code.
TOKEN = re.compile(
    r"""(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.S,
)
# A declaration in a header begins a line and ends in a semicolon; a definition in a source goes on in braces.
DECLARATION = re.compile(r"^(?!typedef|static|DEFINE_)[A-Za-z_][\w *]*?\b(\w+)\([^;{}]*\)[^;{}()]*(?:\([^;{}]*\)\s*)?;", re.M)
DEFINITION = re.compile(r"^[A-Za-z_][\w *]*?\b(\w+)\((?=[^;{}]*\{)", re.M)
CLEANUP = re.compile(r"^DEFINE_CLEANUP\([^,]*, (\w+)\)", re.M)
USE = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w+")


def missing_licence():
    for path in LICENSED:
        if LICENCE not in "\n".join(read(path).splitlines()[:3]):
            yield f"{path}: no '{LICENCE}' in the first lines"


def missing_essay():
    for path in sources():
        if path.suffix != ".c":
            continue
        text = re.sub(r"^\s*(#.*)?\n", "", read(path).split("\n", 1)[-1], flags=re.M)
        essay = re.match(r"\s*/\*(.*?)\*/", text, re.S)
        if not essay or len(essay[1].split()) < ESSAY_WORDS:
            yield f"{path}: does not open with a few words on what it is"


def line_comments():
    for path in C_FILES:
        text = read(path)
        for token in TOKEN.finditer(text):
            if token["line"]:
                yield f"{path}:{text[: token.start()].count(chr(10)) + 1}: a // comment"


def put_off():
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
    for path in files():
        if path.parts[:3] == ("tests", "fuzz", "corpus") or path.suffix in (".zst", ".data"):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            if words.search(line):
                yield f"{path}:{number}: {line.strip()[:80]}"


def machine_paths():
    """Paths of the machine that a line was written on: its checkout, or anybody's home."""
    patterns = ["/ho" "me/[a-z]", "/Us" "ers/[a-z]"]
    ordinary = {"tmp", "root", "usr", "opt", "srv", "var", "mnt", "run", "build", "proc", "home"}
    if SOURCE.parts[1] not in ordinary:
        patterns.append("(?<![a-z.])/" + re.escape(SOURCE.parts[1]) + "/")
    pattern = re.compile("|".join(patterns))
    for path in files():
        if path.parts[0] == "tests" and path.suffix not in (".sh", ".py", ".build"):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            if pattern.search(line):
                yield f"{path}:{number}: {line.strip()[:80]}"


def functions(path):
    """(name, first line, lines) of each function, by the layout that .clang-format gives."""
    start, name = None, ""
    signature = re.compile(r"^[A-Za-z_].*?\b(\w+)\(")
    for number, line in enumerate(read(path).splitlines(), 1):
        match = signature.match(line)
        if match:
            name = match[1]
        if start is None and re.match(r"^(?!typedef|struct|enum|union|#).*\) \{$", line):
            if not line[0].isspace() or name:
                start = number
        elif line == "}" and start is not None:
            yield name, start, number - start + 1
            start, name = None, ""


def lengths():
    notes, findings = [], []
    for path in C_FILES:
        lines = len(read(path).splitlines())
        if lines > LONG_FILE:
            notes.append(f"{path} has {lines} lines, a hard look is due over {LONG_FILE}")
        for name, start, length in functions(path) if path.suffix == ".c" else ():
            words = f"{path}:{start}: {name}() has {length} lines"
            if length > TOO_LONG_FUNCTION:
                findings.append(words)
            elif length > LONG_FUNCTION:
                notes.append(words)
    return findings, notes


def dropped_json():
    """Calls of jansson whose failure nobody sees, and words of a user that need not be UTF-8."""
    dropped = re.compile(r"[;{})]\s*json_(object|array)_(set|append|insert|extend|update)\w*\(")
    word = re.compile(r"\bjson_string\(")
    shown = {Path("client/remote/remote.c"), Path("client/remote/reply.c")}
    for path in sources():
        text = without_words(path)
        for found in dropped.finditer(text):
            number = text[: found.end()].count("\n") + 1
            yield f"{path}:{number}: drops a failure, value_set() and value_append() keep it"
        if path.parts[0] == "client" and path not in shown and word.search(text):
            yield f"{path}: json_string() fails where text is no UTF-8, see remote_word()"


def arguments_of(text, begin):
    """The arguments of a call whose parenthesis is before `begin`, as they are written."""
    found, depth, at = [""], 1, begin
    words = r"""\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|."""
    for token in re.finditer(words, text[begin:], re.S):
        word = token[0]
        depth += (word in "([{") - (word in ")]}")
        if depth == 0:
            break
        if word == "," and depth == 1:
            found.append("")
        else:
            found[-1] += word
    return [argument.strip() for argument in found]


def packed_texts(arguments):
    """Of a json_pack(): the arguments that its format takes as texts, and are no keys."""
    rest, inside, is_key = arguments[1:], [], False
    for letter in "".join(re.findall(r'"([^"]*)"', arguments[0])):
        if letter in "{[":
            inside.append(letter)
            is_key = letter == "{"
        elif letter in "}]":
            inside.pop()
            is_key = inside[-1:] == ["{"]
        elif letter in "soOiIfbn":
            value = rest.pop(0) if letter != "n" else None
            if letter == "s" and not is_key:
                yield value
            is_key = not is_key if inside[-1:] == ["{"] else False


# Arguments of json_pack() that are UTF-8 for certain: words of our own tables, names that passed a check for
# ASCII, and what came out of JSON.
OUR_WORDS = {
    "client/snapshot/snapshot-save.c": {'reply_string(snapshot, "name")', "*file ? file : NULL"},
    "daemon/control/admission.c": {"error"},
    "daemon/control/call-dispatch.c": {"method"},
    "daemon/control/call.c": {"error", "strerror(-error)", "parameter", "reason"},
    "daemon/control/service.c": {"control->options.version", "interface_text(interfaces[i])", "name"},
    "daemon/method/method-config.c": {"section", "key->name"},
    "daemon/method/method-metrics.c": {"name", "type", "help", "entry->config.name", "reasons[i].name"},
    "daemon/method/method-status.c": {"reasons[i].name", "reasons[i].meaning", "reasons[i].remedy", "config->name", "method_status_state_word(entry)",
                                       "method_status_state_of(daemon)"},
    "daemon/method/method-lookup.c": {"entry->config.name"},
    "daemon/call/call-monitor.c": {"event->event"},
    "daemon/session/runtime.c": {"entry->config.name", "boot"},
    "daemon/store/manifest/manifest-codec.c": {"causes[loss->cause]"},
    "gateway/s3/s3-profd.c": {"name", "*file ? file : NULL", "profd->session"},
    "gateway/s3/s3-state.c": {"state->done[i].name"},
    "lib/protocol/connection.c": {"method"},
}


def unsafe_pack():
    """A text without UTF-8 makes a json_pack() fail as a whole: only words of ours may go in as they are."""
    literal = r'(?:"[^"]*"|[A-Z][A-Z0-9_]+|[a-z_]+_name\(.*\)|[a-z]+_names\[.*\])'
    ours = re.compile(rf"(?:[^?]*\? *)?{literal}(?: *: *{literal})?", re.S)
    for path in sources():
        text = read(path)
        if path.parts[0] == "tests":
            continue
        for call in re.finditer(r"\bjson_pack\(", text):
            for value in packed_texts(arguments_of(text, call.end())):
                if value not in OUR_WORDS.get(str(path), ()) and not ours.fullmatch(value):
                    number = text[: call.start()].count("\n") + 1
                    yield f"{path}:{number}: json_pack() fails where {value} is no UTF-8, see remote_word() and answer_text()"


STATIC = re.compile(r"^static (?!assert\b)(?:inline )?(?:_\w+_(?:\([^)]*\))? )?[\w ]+[ *]+(\w*[a-z])\(", re.M)


def unprefixed():
    """A function's name in a flame graph or a backtrace says in which file it is."""
    for path in C_FILES:
        if path.suffix != ".c" or path.parts[0] == "tests":
            continue
        module = path.stem.replace("-", "_")
        prefix = module.split("_")[0] + "_"
        for name in STATIC.findall(without_words(path)):
            if not name.startswith(prefix) and name != module:
                yield f"{path}: {name}() is static and does not begin with '{prefix}'"


def without_words(path):
    return TOKEN.sub(lambda token: " " + "\n" * token[0].count("\n"), read(path))


def uncalled():
    """Functions that a header offers and nobody wants, nor what frees at the end of a block by them."""
    declared, used = {}, set()
    for path in C_FILES:
        text = without_words(path)
        if path.suffix == ".h":
            if path.parts[0] != "tests":
                declared.update((name, path) for name in DECLARATION.findall(text))
            used.update(name for name in USE.findall(CLEANUP.sub("", DECLARATION.sub("", text))))
        else:
            used.update(USE.findall(DEFINITION.sub("", DECLARATION.sub("", text))))
    for name, path in declared.items():
        if name not in used and name + "p" not in used:
            yield f"{path} declares {name}(), which nobody calls"


def misformatted(command):
    paths = [str(path) for path in C_FILES]
    run = subprocess.run(
        [command, "--dry-run", "-Werror", *paths],
        cwd=SOURCE, capture_output=True, text=True, check=False,
    )
    for line in run.stderr.splitlines():
        if "error:" in line:
            yield line


def formatter():
    for command in (f"clang-format-{FORMAT_VERSION}", "clang-format"):
        if shutil.which(command):
            said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
            if f"version {FORMAT_VERSION}." in said.stdout:
                return command
    return None


@test
def every_source_names_its_licence():
    none(missing_licence())


@test
def every_c_file_opens_with_an_essay():
    none(missing_essay())


@test
def there_are_no_line_comments():
    none(line_comments())


@test
def there_is_no_todo():
    none(put_off())


@test
def no_private_path_is_named():
    none(machine_paths())


@test
def functions_are_short():
    findings, notes = lengths()
    for note in notes:
        print(f"# note: {note}")
    none(findings)


@test
def every_function_of_a_header_is_called():
    none(uncalled())


@test
def no_failure_of_jansson_is_ignored():
    none(dropped_json())


@test
def texts_in_a_json_pack_are_utf8():
    none(unsafe_pack())


@test
def static_functions_begin_with_the_name_of_their_module():
    none(unprefixed())


@test
def pages_for_newcomers_are_short():
    none(f"{page} has {len(read(page).splitlines())} lines, more than {limit}"
         for page, limit in PAGES.items()
         if (SOURCE / page).exists() and len(read(page).splitlines()) > limit)


@test
def every_c_file_is_laid_out_by_clang_format():
    command = formatter()
    if not command:
        skip(f"clang-format {FORMAT_VERSION} is not installed")
    none(misformatted(command))


if __name__ == "__main__":
    main()
