#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of metrics: the tables of profd and profd-gateway against alert rules and dashboard.

conf/alerts.yaml and conf/dashboard.json may only use metrics that a table has, with labels that such
metrics have, and promtool must accept the rules.
"""

import json
import re
import subprocess

from tree import SOURCE, need, none, read, sources
from tap import check, main, test

ALERTS, DASHBOARD = "conf/alerts.yaml", "conf/dashboard.json"
# What Prometheus adds to each, and what our tables have.
LABELS = {"instance", "job", "session", "reason", "destination", "type", "version", "mode", "result"}
OF_PROMETHEUS = {"up"}


def metrics():
    """By the rows of the tables, whose first word is a name."""
    return {name for path in sources() if path.suffix == ".c" and path.parts[0] in ("daemon", "gateway")
            for name in re.findall(r'"(profd_[a-z_]+)', read(path))}


def queries():
    for number, line in enumerate(read(ALERTS).splitlines(), 1):
        found = re.match(r"\s*expr: (.*)$", line)
        if found:
            yield f"{ALERTS}:{number}", found[1]
    for panel in json.loads(read(DASHBOARD))["panels"]:
        for target in panel.get("targets", ()):
            yield f"{DASHBOARD}, '{panel['title']}'", target["expr"]
    for variable in json.loads(read(DASHBOARD))["templating"]["list"]:
        if variable["type"] == "query":
            yield f"{DASHBOARD}, variable {variable['name']}", variable["query"]["query"]


def unknown_metrics():
    known = metrics() | OF_PROMETHEUS
    for place, query in queries():
        for name in re.findall(r"\b(profd_[a-z_]+|up(?=[{ ]))", query):
            if name not in known:
                yield f"{place} uses {name}, which no table has"


def unknown_labels():
    for place, query in queries():
        for selector in re.findall(r"\{([^}]*)\}", query):
            for label in re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', selector)):
                if label not in LABELS:
                    yield f"{place} selects by {label}, which no metric has"
    for label in re.findall(r"\$labels\.([a-z_]+)", read(ALERTS)):
        if label not in LABELS:
            yield f"{ALERTS} shows the label {label}, which no metric has"


def faults_of_panels():
    """Places that overlap, and numbers that are there twice."""
    board = json.loads(read(DASHBOARD))
    taken = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in taken:
                    yield f"{DASHBOARD}: '{panel['title']}' lies over '{taken[x, y]}'"
                    return
                taken[x, y] = panel["title"]
    numbers = [panel["id"] for panel in board["panels"]]
    if len(numbers) != len(set(numbers)):
        yield f"{DASHBOARD} has panels with the same id"


def names_of_counters():
    """As Prometheus wants them: counters end in _total, and nothing else does."""
    for path in sources():
        if path.suffix == ".c" and path.parts[0] in ("daemon", "gateway"):
            for name, kind in re.findall(r'"(profd_[a-z_]+)",\s*"(counter|gauge)"', read(path)):
                if name.endswith("_total") != (kind == "counter"):
                    yield f"{path}: {name} is a {kind}"


@test
def rules_and_dashboard_use_metrics_that_there_are():
    check(len(list(queries())) > 20, "hardly any query was found")
    none(unknown_metrics())


@test
def rules_and_dashboard_use_labels_that_there_are():
    none(unknown_labels())


@test
def panels_of_the_dashboard_do_not_overlap():
    none(faults_of_panels())


@test
def counters_alone_end_in_total():
    none(names_of_counters())


@test
def promtool_accepts_the_rules():
    need("promtool")
    said = subprocess.run(["promtool", "check", "rules", str(SOURCE / ALERTS)], capture_output=True, text=True, check=False)
    check(said.returncode == 0, said.stdout + said.stderr)


if __name__ == "__main__":
    main()
