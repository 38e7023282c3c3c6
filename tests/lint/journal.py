#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of events (daemon/program/log-event.c), the catalog (systemd/profd.catalog) and those who log.

Each event has a number of its own and a text under that number, and is logged somewhere; no text and
no line of the log names one that there is not. What a text takes from an entry is a field that
somebody logs.
"""

import re
from collections import Counter

from tree import SOURCE, none, read, sources
from tap import main, test

TABLE, CATALOG, PAGE = "daemon/program/log-event.c", "systemd/profd.catalog", "doc/profd.8"
WIDTH = 80


def table():
    return re.findall(r'^\s+\{ "([\w-]+)",\s+"(\w+)" \},$', read(TABLE), re.M)


def entries():
    """Number, headers and text of each."""
    for part in re.split(r"^-- ", "".join(
            line + "\n" for line in read(CATALOG).splitlines() if not line.startswith("#")), flags=re.M)[1:]:
        head, _, text = part.partition("\n\n")
        number, *lines = head.splitlines()
        yield number.strip(), dict(line.split(": ", 1) for line in lines), text.strip()


def logged():
    return "".join(read(path) for path in sources()
                   if path.suffix == ".c" and str(path).startswith("daemon/") and str(path) != TABLE)


def faults_of_table():
    rows = table()
    if not rows:
        yield f"{TABLE} has no row"
    for what in (Counter(name for name, _ in rows), Counter(number for _, number in rows)):
        for word, count in what.items():
            if count > 1:
                yield f"{TABLE} has {word} twice"
    for name, number in rows:
        if not re.fullmatch(r"[0-9a-f]{32}", number):
            yield f"{TABLE}: the number of {name} is not of 32 hex digits"


def compare_catalog():
    numbers = {number: name for name, number in table()}
    shown = Counter(number for number, _, _ in entries())
    for number in sorted(numbers.keys() - shown.keys()):
        yield f"{CATALOG} has no text for {numbers[number]}"
    for number in sorted(shown.keys() - numbers.keys()):
        yield f"{CATALOG} has a text for {number}, which is no event"
    for number, count in shown.items():
        if count > 1:
            yield f"{CATALOG} has {number} twice"


def faults_of_texts():
    fields = set(re.findall(r'"(PROFD_\w+)"', logged()))
    for number, headers, text in entries():
        for header in ("Subject", "Defined-By", "Documentation"):
            if not headers.get(header):
                yield f"{CATALOG}: {number} has no {header}:"
        page = re.fullmatch(r"man:([\w.-]+)\((\d)\)", headers.get("Documentation", ""))
        if not page or not (SOURCE / "doc" / f"{page[1]}.{page[2]}").exists():
            yield f"{CATALOG}: {number} names no page of ours"
        if not text:
            yield f"{CATALOG}: {number} says nothing"
        for line in text.splitlines():
            if len(line) > WIDTH:
                yield f"{CATALOG}: a line of {number} is longer than {WIDTH}"
        for field in re.findall(r"@(\w+)@", headers.get("Subject", "") + text):
            if field not in fields:
                yield f"{CATALOG}: {number} takes {field}, which nobody logs"


def compare_page():
    """The reasons why a session is degraded have a part of their own."""
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\.It Li (.*)$", read(PAGE), re.M))))
    for name, _ in table():
        if name not in words and not name.startswith("degraded-"):
            yield f"{PAGE} does not name {name}"


def compare_logged():
    text, names = logged(), {name for name, _ in table()}
    for name in sorted(names):
        if f'"{name}"' not in text:
            yield f"{name} of {TABLE} is logged nowhere"
    for name in sorted(set(re.findall(r'"PROFD_EVENT", "([^"]+)"', text)) - names):
        yield f"{name} is logged and has no row in {TABLE}"


@test
def each_event_has_a_name_and_a_number_of_its_own():
    none(faults_of_table())


@test
def each_event_has_a_text_in_the_catalog():
    none(compare_catalog())


@test
def each_text_is_long_enough_and_uses_logged_fields():
    none(faults_of_texts())


@test
def each_event_is_in_the_manual():
    none(compare_page())


@test
def exactly_the_listed_events_are_logged():
    none(compare_logged())


if __name__ == "__main__":
    main()
