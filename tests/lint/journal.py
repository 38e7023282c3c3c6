#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of events, the catalogs and those who log, for profd and profd-gateway.

Each event has a number of its own and a text under that number, and is logged somewhere; no text and
no line of the log names one that there is not. What a text takes from an entry is a field that
somebody logs.
"""

import re
from collections import Counter, namedtuple

from tree import SOURCE, none, read, sources
from tap import main, test

Log = namedtuple("Log", "folder table catalog page")
LOGS = (
    Log("daemon/", "daemon/program/log-event.c", "systemd/profd.catalog", "doc/profd.8"),
    Log("gateway/", "gateway/program/gateway-event.c", "systemd/profd-gateway.catalog", "doc/profd-gateway.8"),
)
WIDTH = 80


def table(log):
    return re.findall(r'^\s+\{ "([\w-]+)",\s+"(\w+)" \},$', read(log.table), re.M)


def entries(log):
    """Number, headers and text of each."""
    for part in re.split(r"^-- ", "".join(
            line + "\n" for line in read(log.catalog).splitlines() if not line.startswith("#")), flags=re.M)[1:]:
        head, _, text = part.partition("\n\n")
        number, *lines = head.splitlines()
        yield number.strip(), dict(line.split(": ", 1) for line in lines), text.strip()


def logged(log):
    return "".join(read(path) for path in sources()
                   if path.suffix == ".c" and str(path).startswith(log.folder) and str(path) != log.table)


def faults_of_table(log):
    rows = table(log)
    if not rows:
        yield f"{log.table} has no row"
    for what in (Counter(name for name, _ in rows), Counter(number for _, number in rows)):
        for word, count in what.items():
            if count > 1:
                yield f"{log.table} has {word} twice"
    for name, number in rows:
        if not re.fullmatch(r"[0-9a-f]{32}", number):
            yield f"{log.table}: the number of {name} is not of 32 hex digits"


def compare_catalog(log):
    numbers = {number: name for name, number in table(log)}
    shown = Counter(number for number, _, _ in entries(log))
    for number in sorted(numbers.keys() - shown.keys()):
        yield f"{log.catalog} has no text for {numbers[number]}"
    for number in sorted(shown.keys() - numbers.keys()):
        yield f"{log.catalog} has a text for {number}, which is no event"
    for number, count in shown.items():
        if count > 1:
            yield f"{log.catalog} has {number} twice"


def faults_of_texts(log):
    fields = set(re.findall(r'"(PROFD_\w+)"', logged(log)))
    for number, headers, text in entries(log):
        for header in ("Subject", "Defined-By", "Documentation"):
            if not headers.get(header):
                yield f"{log.catalog}: {number} has no {header}:"
        page = re.fullmatch(r"man:([\w.-]+)\((\d)\)", headers.get("Documentation", ""))
        if not page or not (SOURCE / "doc" / f"{page[1]}.{page[2]}").exists():
            yield f"{log.catalog}: {number} names no page of ours"
        if not text:
            yield f"{log.catalog}: {number} says nothing"
        for line in text.splitlines():
            if len(line) > WIDTH:
                yield f"{log.catalog}: a line of {number} is longer than {WIDTH}"
        for field in re.findall(r"@(\w+)@", headers.get("Subject", "") + text):
            if field not in fields:
                yield f"{log.catalog}: {number} takes {field}, which nobody logs"


def compare_page(log):
    """The reasons why a session is degraded have a part of their own."""
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\.It Li (.*)$", read(log.page), re.M))))
    for name, _ in table(log):
        if name not in words and not name.startswith("degraded-"):
            yield f"{log.page} does not name {name}"


def compare_logged(log):
    text, names = logged(log), {name for name, _ in table(log)}
    for name in sorted(names):
        if f'"{name}"' not in text:
            yield f"{name} of {log.table} is logged nowhere"
    for name in sorted(set(re.findall(r'"PROFD_EVENT", "([^"]+)"', text)) - names):
        yield f"{name} is logged and has no row in {log.table}"


def numbers_of_two_logs():
    seen = Counter(number for log in LOGS if (SOURCE / log.table).exists() for _, number in table(log))
    return [f"{number} is in two tables of events" for number, count in seen.items() if count > 1]


def of_all(compare):
    """A tree without the table of a program has no such program."""
    return [fault for log in LOGS if (SOURCE / log.table).exists() for fault in compare(log)]


@test
def each_event_has_a_name_and_a_number_of_its_own():
    none(of_all(faults_of_table) + numbers_of_two_logs())


@test
def each_event_has_a_text_in_the_catalog():
    none(of_all(compare_catalog))


@test
def each_text_is_long_enough_and_uses_logged_fields():
    none(of_all(faults_of_texts))


@test
def each_event_is_in_the_manual():
    none(of_all(compare_page))


@test
def exactly_the_listed_events_are_logged():
    none(of_all(compare_logged))


if __name__ == "__main__":
    main()
