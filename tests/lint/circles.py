#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""No circles between folders, nor between the files of one: by include and by call.

A module is a source and the header of its name. A module needs another one when it includes its
header or when its object uses a symbol that the other one defines; a folder needs another one when
one of its modules does. Whoever follows these arrows must never come back to where he began.
"""

from pathlib import Path

from tree import INCLUDE, SOURCE, none, objects, read, resolve, sources, symbols
from tap import check, main, test

FILES_MAX = 15
PAGE_LINES = range(10, 26)


def module(path):
    return Path(path).with_suffix("")


def arrows():
    """Which modules a module needs."""
    found = {module(path): set() for path in sources()}
    for path in sources():
        for mark, name in INCLUDE.findall(read(path)):
            target = resolve(name, path) if mark == '"' else None
            if target:
                found[module(path)].add(module(target))
    built = list(objects())
    owners = {symbol: path for path, symbol in symbols(built, "--defined-only", "--extern-only")}
    for path, symbol in symbols(built, "--undefined-only"):
        if symbol in owners:
            found[module(path)].add(module(owners[symbol]))
    for start, ends in found.items():
        ends.discard(start)
    return found


def reachable(graph, start):
    seen, left = set(), [start]
    while left:
        for end in graph.get(left.pop(), ()):
            if end not in seen:
                seen.add(end)
                left.append(end)
    return seen


def circles(graph):
    """Each set of nodes that reach each other, sorted."""
    beyond = {node: reachable(graph, node) for node in graph}
    found = {tuple(sorted(str(other) for other in beyond[node] if node in beyond.get(other, ())))
             for node in graph if node in beyond[node]}
    return sorted(found)


def of_folders(graph):
    found = {}
    for start, ends in graph.items():
        folders = found.setdefault(start.parent, set())
        folders.update(end.parent for end in ends if end.parent != start.parent)
    return found


ARROWS = arrows()


@test
def no_files_of_a_folder_need_each_other():
    none(f"in a circle: {', '.join(names)}" for names in circles(ARROWS))


@test
def no_folders_need_each_other():
    none(f"in a circle: {', '.join(names)}" for names in circles(of_folders(ARROWS)))


@test
def no_folder_has_more_than_15_sources():
    counts = {}
    for path in sources():
        if path.suffix == ".c":
            counts[path.parent] = counts.get(path.parent, 0) + 1
    none(f"{folder} has {n} .c files, more than {FILES_MAX}: it holds several rooms"
         for folder, n in counts.items() if n > FILES_MAX)


@test
def every_room_has_a_short_readme():
    for folder in sorted({path.parent for path in sources() if path.suffix == ".c"}):
        page = SOURCE / folder / "README.md"
        lines = len(page.read_text(encoding="utf-8").splitlines()) if page.exists() else 0
        check(lines in PAGE_LINES, f"{page} has {lines} lines, not {PAGE_LINES[0]} to {PAGE_LINES[-1]}")


@test
def no_two_sources_share_a_name():
    first = {}
    none(f"{path} has the name of {first[path.name]}" for path in sources()
         if path.suffix == ".c" and first.setdefault(path.name, path) != path)


if __name__ == "__main__":
    main()
