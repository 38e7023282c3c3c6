#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""conf/profd.conf and the daemon's pages against the tables of profd.

`profd --print-config-keys` prints a row a key: section, name, default, what it takes. The file
shows each key commented out with its default, under its section and in the order of the table, and
no other key; the page profd.conf(5) has an item for each, in the part of its section, that names
the default; profd(8) has one for each option of `profd --help`, and the completions know them.
"""

import re
import subprocess
from collections import namedtuple

from tree import BUILD, none, read
from tap import main, test

PROFD = str(BUILD / "daemon" / "profd")
COMPLETIONS = ("profd.bash", "_profd", "profd.fish")
CONF, KEYS_PAGE, PAGE = "conf/profd.conf", "doc/profd.conf.5", "doc/profd.8"

Key = namedtuple("Key", "section name default takes")


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def keys_of_daemon():
    return [Key(*line.split("\t")) for line in said_by(PROFD, "--print-config-keys").splitlines()]


def keys_of_file():
    section = ""
    for line in read(CONF).splitlines():
        heading = re.match(r"\[(.+)\]$", line)
        setting = re.match(r"#?([A-Z]\w*)=(.*)$", line)
        if heading:
            section = heading[1]
        elif setting:
            yield section, setting[1], setting[2]


def kind(section):
    """Profd or Session, whichever session it is."""
    return section.split()[0] if section else "no section"


def compare_file(keys):
    if not keys:
        yield "profd --print-config-keys prints no key"
    table = {(key.section, key.name): key.default for key in keys}
    lines = [(kind(section), name, value) for section, name, value in keys_of_file()]
    shown = {(section, name): value for section, name, value in lines}
    for section, name in sorted(table.keys() - shown.keys()):
        yield f"{CONF} lacks {name}= of [{section}]"
    for section, name in sorted(shown.keys() - table.keys()):
        yield f"{CONF} has {name}= in [{section}], which profd does not know"
    for key in sorted(table.keys() & shown.keys()):
        if table[key] != shown[key]:
            yield f"{CONF} shows {key[1]}={shown[key]}, the default is {table[key]}"
    if table.keys() == shown.keys() and list(table) != [line[:2] for line in lines]:
        yield f"{CONF} has its keys in another order than the table, or twice"


def items_of_page():
    """Section and name of each key, with the text of its item."""
    for part in read(KEYS_PAGE).split("\n.Ss ")[1:]:
        section = re.match(r"\[(\w+)", part)
        if not section:
            continue
        for item in part.split("\n.It ")[1:]:
            name = re.match(r"Va\s+(\w+)", item)
            if name:
                yield (section[1], name[1]), item


def words(text):
    return re.findall(r"[^\s,.]+", text)


def compare_page(keys):
    items = dict(items_of_page())
    table = {(key.section, key.name): key.default for key in keys}
    for section, name in sorted(table.keys() - items.keys()):
        yield f"{KEYS_PAGE} has no item {name}= below [{section}]"
    for section, name in sorted(items.keys() - table.keys()):
        yield f"{KEYS_PAGE} has an item {name}= below [{section}], which profd does not know"
    for key in sorted(table.keys() & items.keys()):
        if table[key] and ("default" not in items[key] or table[key] not in words(items[key])):
            yield f"{KEYS_PAGE} does not say that the default of {key[1]}= is {table[key]}"


def options_of_daemon():
    return set(re.findall(r"^\s+--([a-z][\w-]*)", said_by(PROFD, "--help"), re.M))


def compare_completions():
    for name in COMPLETIONS:
        text = read(BUILD / "daemon" / name)
        for option in sorted(options_of_daemon()):
            if not re.search(rf"(--|-l ){option}(?![\w-])", text):
                yield f"{name} does not know --{option}"


def compare_options():
    known = options_of_daemon()
    page = set(re.findall(r"\bFl\s+\\?-([a-z][\w-]*)", read(PAGE).replace("\\-", "-")))
    if "help" not in known:
        yield "profd --help lists no --help"
    for option in sorted(known - page):
        yield f"{PAGE} does not name --{option}"
    for option in sorted(page - known):
        yield f"{PAGE} names --{option}, which profd --help does not"


@test
def profd_conf_shows_every_key_with_its_default():
    none(compare_file(keys_of_daemon()))


@test
def the_page_of_profd_conf_has_every_key():
    none(compare_page(keys_of_daemon()))


@test
def the_page_of_profd_has_every_option():
    none(compare_options())


@test
def the_completions_of_profd_have_every_option():
    none(compare_completions())


if __name__ == "__main__":
    main()
