#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Configuration files and pages of profd and profd-gateway against their tables.

`profd --print-config-keys` prints a row a key: section, name, default, what it takes. The file
shows each key commented out with its default, under its section and in the order of the table, and
no other key; the page profd.conf(5) has an item for each, in the part of its section, that names
the default; profd(8) has one for each option of `profd --help`, and the completions know them. The
same holds for profd-gateway with gateway.conf(5) and profd-gateway(8).
"""

import re
import subprocess
from collections import namedtuple

from tree import BUILD, SOURCE, none, read
from tap import main, test

Program = namedtuple("Program", "binary conf keys_page page completions")
PROGRAMS = (
    Program("daemon/profd", "conf/profd.conf", "doc/profd.conf.5", "doc/profd.8", "profd.bash _profd profd.fish"),
    Program("gateway/profd-gateway", "conf/gateway.conf", "doc/gateway.conf.5", "doc/profd-gateway.8",
            "profd-gateway.bash _profd-gateway profd-gateway.fish"),
)

Key = namedtuple("Key", "section name default takes")


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def name_of(program):
    return program.binary.split("/")[-1]


def keys_of(program):
    return [Key(*line.split("\t")) for line in said_by(str(BUILD / program.binary), "--print-config-keys").splitlines()]


def keys_of_file(program):
    section = ""
    for line in read(program.conf).splitlines():
        heading = re.match(r"#?\[(.+)\]$", line)
        setting = re.match(r"#?([A-Z]\w*)=(.*)$", line)
        if heading:
            section = heading[1]
        elif setting:
            yield section, setting[1], setting[2]


def kind(section):
    """Profd or Session, whichever session it is."""
    return section.split()[0] if section else "no section"


def compare_file(program):
    keys, name_of_it, conf = keys_of(program), name_of(program), program.conf
    if not keys:
        yield f"{name_of_it} --print-config-keys prints no key"
    table = {(key.section, key.name): key.default for key in keys}
    lines = [(kind(section), name, value) for section, name, value in keys_of_file(program)]
    shown = {(section, name): value for section, name, value in lines}
    for section, name in sorted(table.keys() - shown.keys()):
        yield f"{conf} lacks {name}= of [{section}]"
    for section, name in sorted(shown.keys() - table.keys()):
        yield f"{conf} has {name}= in [{section}], which {name_of_it} does not know"
    for key in sorted(table.keys() & shown.keys()):
        if table[key] != shown[key]:
            yield f"{conf} shows {key[1]}={shown[key]}, the default is {table[key]}"
    if table.keys() == shown.keys() and list(table) != [line[:2] for line in lines]:
        yield f"{conf} has its keys in another order than the table, or twice"


def items_of_page(program):
    """Section and name of each key, with the text of its item."""
    for part in read(program.keys_page).split("\n.Ss ")[1:]:
        section = re.match(r"\[(\w+)", part)
        if not section:
            continue
        for item in part.split("\n.Sh ")[0].split("\n.It ")[1:]:
            name = re.match(r"Va\s+(\w+)", item)
            if name:
                yield (section[1], name[1]), item


def words(text):
    """With and without the point that may end a sentence."""
    found = re.findall(r"\S+", text)
    return {*found, *(word.rstrip(",.") for word in found)}


def compare_page(program):
    items, page = dict(items_of_page(program)), program.keys_page
    table = {(key.section, key.name): key.default for key in keys_of(program)}
    for section, name in sorted(table.keys() - items.keys()):
        yield f"{page} has no item {name}= below [{section}]"
    for section, name in sorted(items.keys() - table.keys()):
        yield f"{page} has an item {name}= below [{section}], which {name_of(program)} does not know"
    for key in sorted(table.keys() & items.keys()):
        if table[key] and ("default" not in items[key] or table[key] not in words(items[key])):
            yield f"{page} does not say that the default of {key[1]}= is {table[key]}"


def options_of(program):
    return set(re.findall(r"^\s+--([a-z][\w-]*)", said_by(str(BUILD / program.binary), "--help"), re.M))


def compare_completions(program):
    for name in program.completions.split():
        text = read((BUILD / program.binary).parent / name)
        for option in sorted(options_of(program)):
            if not re.search(rf"(--|-l ){option}(?![\w-])", text):
                yield f"{name} does not know --{option}"


def compare_options(program):
    known, page = options_of(program), program.page
    named = set(re.findall(r"\bFl\s+\\?-([a-z][\w-]*)", read(page).replace("\\-", "-")))
    if "help" not in known:
        yield f"{name_of(program)} --help lists no --help"
    for option in sorted(known - named):
        yield f"{page} does not name --{option}"
    for option in sorted(named - known):
        yield f"{page} names --{option}, which {name_of(program)} --help does not"


def of_all(compare):
    """A tree without the configuration of a program has no such program."""
    return [fault for program in PROGRAMS if (SOURCE / program.conf).exists() for fault in compare(program)]


@test
def configuration_files_show_every_key_with_its_default():
    none(of_all(compare_file))


@test
def pages_of_configuration_files_have_every_key():
    none(of_all(compare_page))


@test
def pages_of_daemons_have_every_option():
    none(of_all(compare_options))


@test
def completions_of_daemons_have_every_option():
    none(of_all(compare_completions))


if __name__ == "__main__":
    main()
