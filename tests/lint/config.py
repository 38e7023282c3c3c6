#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""conf/profd.conf and the daemon's pages against the tables of profd.

`profd --print-config-keys` prints a row a key: section, name, default, what it takes. The file
shows each key commented out with its default, under its section, and no other key; the page
profd.conf(5) has an item for each, profd(8) one for each option of `profd --help`.
"""

import re
import subprocess
from collections import namedtuple

from tree import BUILD, none, read
from tap import main, test

PROFD = str(BUILD / "daemon" / "profd")
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


def compare_file(keys):
    if not keys:
        yield "profd --print-config-keys prints no key"
    table = {(key.section.split()[0], key.name): key.default for key in keys}
    shown = {(section.split()[0], name): value for section, name, value in keys_of_file()}
    for section, name in sorted(table.keys() - shown.keys()):
        yield f"{CONF} lacks {name}= of [{section}]"
    for section, name in sorted(shown.keys() - table.keys()):
        yield f"{CONF} has {name}= in [{section}], which profd does not know"
    for key in sorted(table.keys() & shown.keys()):
        if table[key] != shown[key]:
            yield f"{CONF} shows {key[1]}={shown[key]}, the default is {table[key]}"


def compare_page(keys):
    items = set(re.findall(r"^\.It\s+Va\s+(\w+)", read(KEYS_PAGE), re.M))
    names = {key.name for key in keys}
    for name in sorted(names - items):
        yield f"{KEYS_PAGE} has no item {name}="
    for name in sorted(items - names):
        yield f"{KEYS_PAGE} has an item {name}=, which profd does not know"


def compare_options():
    known = set(re.findall(r"^\s+--([a-z][\w-]*)", said_by(PROFD, "--help"), re.M))
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


if __name__ == "__main__":
    main()
