#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds layers.table against the includes of the sources and the symbols of the objects.

A room is a folder. It may include itself, the rooms of its row and single headers named there;
what its objects need from other rooms must come from where it may include.
"""

import fnmatch
import re
from pathlib import Path

from tree import INCLUDE, SOURCE, none, objects, read, resolve, sources, symbols
from tap import main, test

OF_THE_SYSTEM = re.compile(r"^((sys|linux|asm|arpa|net|netinet)/)?[a-z0-9_-]+\.h$")


def table():
    rows = {}
    for line in read("tests/lint/layers.table").splitlines():
        if line.startswith("#"):
            continue
        room, *rest = re.split(r"\s{2,}", line.strip())
        rooms, headers = ([] if cell == "-" else cell.split() for cell in rest)
        rows[room] = (rooms, headers)
    return rows


ROWS = table()


def room_of(path):
    """The longest room that the path lies in: daemon/store/sync/x.c is of daemon/store."""
    for folder in Path(path).parents:
        if str(folder) in ROWS:
            return str(folder)
    return None


def lies_in_a_room(folder):
    """A room may have rooms inside."""
    return str(folder) in ROWS or str(folder.parent) in ROWS


def may_include(room, path):
    rooms, _ = ROWS[room]
    target = room_of(path)
    return target == room or any(
        str(path) == allowed or (target and fnmatch.fnmatchcase(target, allowed))
        for allowed in rooms
    )


def others_header_is_allowed(room, name):
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in ROWS[room][1]):
        return True
    owned = any(fnmatch.fnmatchcase(name, p) for _, headers in ROWS.values() for p in headers)
    return not owned and OF_THE_SYSTEM.match(name)


def bad_includes():
    for path in sources():
        room = room_of(path)
        if room is None:
            yield f"{path} lies in no room of layers.table"
            continue
        for mark, name in INCLUDE.findall(read(path)):
            if mark == "<":
                if not others_header_is_allowed(room, name):
                    yield f"{path} includes <{name}>, which {room} may not"
            elif ".." in name:
                yield f'{path} includes "{name}": name headers by their room'
            elif resolve(name, path) is None:
                yield f'{path} includes "{name}", which is in no room'
            elif not may_include(room, resolve(name, path)):
                yield f'{path} includes "{name}", which {room} may not'


def names_symbol(header, symbol):
    return re.search(rf"\b{re.escape(symbol)}\b", read(header)) is not None


def may_use(room, symbol, owner):
    if may_include(room, owner):
        return True
    # A single header of a room opens what that header names, and no more.
    return any(
        allowed.endswith(".h")
        and room_of(allowed) == room_of(owner)
        and (SOURCE / allowed).exists()
        and names_symbol(allowed, symbol)
        for allowed in ROWS[room][0]
    )


def bad_symbols(pairs):
    owners = {symbol: path for path, symbol in symbols(pairs, "--defined-only", "--extern-only")}
    for path, symbol in symbols(pairs, "--undefined-only"):
        room, owner = room_of(path), owners.get(symbol)
        if owner and not may_use(room, symbol, owner):
            yield f"{path} uses {symbol} of {owner}, which {room} may not"
        if symbol.startswith("event_") and owner is None and room != "lib/loop":
            yield f"{path} uses {symbol} of libevent, which {room} may not"


@test
def every_include_is_in_the_table():
    none(bad_includes())


@test
def every_symbol_comes_from_a_room_that_may_be_included():
    none(bad_symbols(list(objects())))


@test
def every_source_is_built():
    built = {path for path, _ in objects()}
    none(f"{path} is built by no meson.build" for path in sources()
         if path.suffix == ".c" and path not in built)


@test
def every_folder_of_sources_is_a_room():
    none(f"{path} lies in no room of layers.table" for path in sources()
         if path.suffix == ".c" and not lies_in_a_room(path.parent))


@test
def architecture_md_shows_the_table():
    shown = read("ARCHITECTURE.md")
    none(f"ARCHITECTURE.md lacks the row: {line}"
         for line in read("tests/lint/layers.table").splitlines() if line not in shown)


if __name__ == "__main__":
    main()
