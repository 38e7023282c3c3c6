#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pages in a browser: what is drawn, what keys and clicks do, and that nothing goes wrong on the way.

The pages are of a host that never was (make-page.c). What they show is compared with their data,
which is decoded here once more. Pictures are kept in build/pages, to be looked at.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import time

from browser import Browser
from tap import build_path, check, equal, main, skip, source_path, test

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
HOUR_BYTES_MAX = 10_000_000
FOLDER = build_path("pages")
_browsers = {}


def page(*words):
    """The path of a page, made once."""
    path = os.path.join(FOLDER, "-".join(words) + ".html")
    if path not in page.made:
        os.makedirs(FOLDER, exist_ok=True)
        with open(path, "wb") as file:
            subprocess.run([build_path("tests/pages/make-page"), *words], stdout=file, check=True)
        page.made.add(path)
    return path


page.made = set()


def browser(width=1600, height=1000, dark=False):
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            skip(f"there is no {program}")
    key = (width, height, dark)
    if key not in _browsers:
        _browsers[key] = Browser(width, height, dark).__enter__()
    return _browsers[key]


def picture(where, name):
    where.picture(os.path.join(FOLDER, name + ".png"))


def no_error(where):
    equal(where.errors(), [], "the console")


class Data:
    """The data of a page."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read(), re.S)[1]
        self.json = json.loads(text)
        self.frames = list(self._rows(self.json["frames"], 7 if self.json["by_address"] else 3))
        self.names = [self.json["texts"][row[0]] for row in self.frames]
        self._read_nodes(iter(self._numbers(self.json["nodes"])))

    @staticmethod
    def _numbers(text):
        value, shift = 0, 0
        for letter in text:
            digit = DIGITS.index(letter)
            value |= (digit & 31) << shift
            shift += 5
            if digit < 32:
                yield value
                value, shift = 0, 0

    def _rows(self, text, n):
        numbers = list(self._numbers(text))
        return (numbers[i:i + n] for i in range(0, len(numbers), n))

    def _read_nodes(self, numbers):
        compared = self.json["compared"]
        self.stacks = []  # (names from the outermost, own weight)
        path = []
        for i in range(self.json["n_nodes"]):
            if i > 0:
                for _ in range(next(numbers)):
                    path.pop()
                path.append(self.names[next(numbers)])
            weight = next(numbers)
            if compared:
                next(numbers)
            self.stacks.append((tuple(path), weight))
            path = path if i else []
        self.total = sum(weight for _, weight in self.stacks)

    def matched(self, pattern):
        wanted = re.compile(pattern, re.I)
        return sum(weight for path, weight in self.stacks if any(wanted.search(name) for name in path))

    def range_samples(self, begin, end):
        heat = self.json["heat"]
        numbers, bucket, found = iter(self._numbers(heat["cells"])), 0, 0
        for _ in range(heat["n_filled"]):
            bucket += next(numbers)
            for _ in range(next(numbers)):
                count = next(numbers) if next(numbers) & 1 else 1
                found += count if begin <= bucket < end else 0
            bucket += 1
        return found


def count(text):
    return int(text.replace(",", ""))


def percent(text):
    return float(text.strip().rstrip("%"))


def flame_box(where):
    return where.box("#pane-a canvas")


def press_root_child(where, share=0.1, row=1):
    """Clicks the box in a row above the root, at a share of the width."""
    x, y, width, height = flame_box(where)
    where.press_at(x + share * width, y + height - 4 - 20 * row - 10)


@test
def scripts_parse():
    if not shutil.which("node"):
        skip("there is no node")
    for path in sorted(glob.glob(source_path("lib/page/script/*.js"))):
        run = subprocess.run(["node", "--check", path], capture_output=True, text=True, check=False)
        equal(run.returncode, 0, f"{path}: {run.stderr}")


@test
def pages_open_without_an_error():
    b = browser()
    for words in (("flame", "1"), ("flame", "1000"), ("address", "1000"), ("difference", "1000"), ("heat", "1", "10"),
                  ("heat", "2000", "120"), ("incident", "2000", "120")):
        b.open(page(*words))
        check(b.seen("#pane-a canvas"), f"{words} has no picture")
        no_error(b)
        picture(b, "light-" + "-".join(words))


@test
def dark_and_narrow_pages_open_without_an_error():
    b = browser(800, 1000, dark=True)
    for words in (("flame", "1000"), ("heat", "2000", "120"), ("incident", "2000", "120")):
        b.open(page(*words))
        equal(b.run("return document.documentElement.dataset.theme"), "dark", "the theme")
        equal(b.run("return document.documentElement.scrollWidth <= innerWidth"), True, "it fits in the width")
        no_error(b)
        picture(b, "dark-narrow-" + words[0])


@test
def the_canvas_is_painted():
    b = browser()
    b.open(page("flame", "1"))
    x, y, width, height = flame_box(b)
    color = b.run("const c = document.querySelector('#pane-a canvas');"
                  "return [...c.getContext('2d').getImageData(arguments[0], arguments[1], 1, 1).data]",
                  round(width - 20), round(height - 14))
    equal(color[3], 255, "the opacity of the root")


@test
def nothing_is_loaded_from_elsewhere():
    b = browser()
    b.open(page("incident", "2000", "120"))
    equal(b.run("return performance.getEntriesByType('resource').length"), 0, "loaded resources")
    allowed = b.post("/execute/async", args=[], script="""
        const done = arguments[0];
        fetch("http://127.0.0.1:9/").then(() => done("yes"), (e) => done(String(e)));
    """)
    check("Failed" in allowed, f"a request got {allowed}")
    refused = b.errors()
    check(any("Content Security Policy" in line for line in refused), f"the policy refused nothing: {refused}")


@test
def hostile_names_are_text():
    b = browser()
    b.open(page("hostile"))
    no_error(b)
    equal(b.run("return document.title"), "shop-7.example", "the title")
    names = b.run("return [...document.querySelectorAll('.frames button.name')].map((e) => e.textContent)")
    for wanted in ("</script><script>document.title='broken'</script>", "<!--",
                   r"bad \xff utf-8 \xe2\x80\xae reversed"):
        check(wanted in names, f"{wanted!r} is not among {names}")


@test
def search_shows_the_share_that_matched():
    b, data = browser(), Data(page("flame", "1000"))
    b.open(page("flame", "1000"))
    b.keys("/", *"tcp|brk")
    b.wait("return location.hash.includes('q=')")
    b.settle()
    shown = re.match(r"([\d.]+)% matched, ([\d,]+) samples", b.text("#matched"))
    equal(count(shown[2]), data.matched("tcp|brk"), "the matched samples")
    check(abs(percent(shown[1]) - 100 * data.matched("tcp|brk") / data.total) < 0.06, f"the share is {shown[1]}")
    rows = b.run("return [...document.querySelectorAll('.frames button.name')].map((e) => e.textContent)")
    check(rows and all(re.search("tcp|brk", row) for row in rows), f"the table has {rows}")
    picture(b, "searched")
    no_error(b)


@test
def a_broken_expression_is_named():
    b = browser()
    b.open(page("flame", "1000"), "#q=%28")
    check("not a regular expression" in b.text("#matched"), b.text("#matched"))
    equal(b.run("return document.querySelector('#search').getAttribute('aria-invalid')"), "true", "aria-invalid")
    no_error(b)


@test
def click_zooms_and_escape_zooms_out():
    b = browser()
    b.open(page("flame", "1000"))
    press_root_child(b)
    check("zoom=" in b.hash(), f"the address is {b.hash()}")
    check(b.seen("#chosen-name"), "nothing is said about the box")
    name = b.text("#chosen-name")
    address = b.hash()
    picture(b, "zoomed")
    press_root_child(b, share=0.95)  # the zoomed box has the whole width
    equal(b.text("#chosen-name"), name, "the box at the right edge")
    b.keys("Escape")
    equal(b.hash(), "", "the address")
    press_root_child(b, share=0.95)
    check(b.text("#chosen-name") != name, "it is still zoomed")
    b.open(page("flame", "1000"), address)
    equal(b.text("#chosen-name"), name, "the box that the address names")
    no_error(b)


@test
def keys_move_and_zoom():
    b = browser()
    b.open(page("flame", "1000"))
    b.run("document.querySelector('#pane-a canvas').focus()")
    b.keys("ArrowUp")
    equal(b.text("#chosen-name"), "all", "the first box")
    b.keys("ArrowUp")
    unit = b.text("#chosen-name")
    check(unit.endswith(".service"), f"above the root is {unit}")
    b.keys("ArrowRight")
    check(b.text("#chosen-name") != unit, "the box beside is the same")
    check(b.text("#chosen-name") in b.text("#announcement"), "it is not announced")
    b.keys("ArrowLeft", "Enter")
    check("zoom=" in b.hash(), f"the address is {b.hash()}")
    equal(b.text("#chosen-name"), unit, "the box")
    b.keys("ArrowDown")
    equal(b.text("#chosen-name"), "all", "the box below")
    b.keys("?")
    check(b.seen("#help"), "there is no help")
    picture(b, "help")
    b.keys("Escape")
    check(not b.seen("#help"), "the help stays")
    no_error(b)


@test
def flame_and_icicle_and_theme_change():
    b = browser()
    b.open(page("flame", "1000"))
    b.keys("i")
    equal(b.hash(), "#shape=icicle", "the address")
    x, y, _, _ = flame_box(b)
    b.press_at(x + 20, y + 14)
    equal(b.text("#chosen-name"), "all", "the box at the top")
    b.keys("d")
    equal(b.run("return document.documentElement.dataset.theme"), "dark", "the theme")
    check("theme=dark" in b.hash(), b.hash())
    picture(b, "dark-icicle")
    no_error(b)


@test
def bottom_up_begins_with_the_function_that_ran_most():
    b, data = browser(), Data(page("flame", "1000"))
    own = {}
    for path, weight in data.stacks:
        own[path[-1] if path else ""] = own.get(path[-1] if path else "", 0) + weight
    hottest = max(own, key=own.get)
    b.open(page("flame", "1000"), "#view=bottom")
    press_root_child(b, share=0.01)
    equal(b.text("#chosen-name"), hottest, "the first box")
    check(f"{own[hottest]:,} samples" in b.text("#chosen-weight"), b.text("#chosen-weight"))
    # What a function took itself is the total of its box; the boxes above are ways to it.
    check("Self" not in b.text("#chosen-weight"), b.text("#chosen-weight"))
    picture(b, "bottom-up")
    no_error(b)


@test
def sandwich_has_callers_and_callees():
    b, data = browser(), Data(page("flame", "1000"))
    b.open(page("flame", "1000"), "#q=%5Emalloc%24")
    b.run("document.querySelector('.frames .sandwich').click()")
    b.settle()
    check("view=sandwich" in b.hash(), b.hash())
    b.keys("Escape")
    b.settle()
    whole = sum(weight for path, weight in data.stacks if "malloc" in path)
    middle = b.text("#middle")
    check(middle.startswith("malloc"), f"the middle is {middle}")
    shown = percent(re.search(r"([\d.]+)% of all", middle)[1])
    check(abs(shown - 100 * whole / data.total) < 0.06, f"{shown} is not {100 * whole / data.total}")
    check(b.seen("#pane-a canvas") and b.seen("#pane-b canvas"), "a half is missing")
    picture(b, "sandwich")
    no_error(b)


@test
def addresses_can_be_merged():
    b = browser()
    b.open(page("address", "1000"))
    apart = b.run("return document.querySelectorAll('.frames tbody tr').length")
    b.run("const e = document.querySelector('#merge'); e.value = 'name'; e.dispatchEvent(new Event('change'))")
    b.settle()
    merged = b.run("return document.querySelectorAll('.frames tbody tr').length")
    check(merged < apart, f"{merged} rows are not fewer than {apart}")
    equal(b.hash(), "#merge=name", "the address")
    no_error(b)


@test
def the_table_sorts():
    b = browser()
    b.open(page("flame", "1000"))
    b.click('[data-column="name"]')
    names = b.run("return [...document.querySelectorAll('.frames button.name')].map((e) => e.textContent)")
    equal(names, sorted(names, reverse=names[0] > names[-1]), "the names")
    b.click('[data-column="total"]')
    totals = b.run("return [...document.querySelectorAll('.frames tbody tr td:last-child small')].map((e) => e.textContent)")
    totals = [count(text) for text in totals]
    equal(totals, sorted(totals, reverse=True), "the totals")
    equal(b.run("return document.querySelector('[data-column=total]').closest('th').getAttribute('aria-sort')"),
          "descending", "aria-sort")
    no_error(b)


@test
def a_stack_can_be_copied():
    b = browser()
    b.open(page("flame", "1000"))
    press_root_child(b, row=4, share=0.05)
    b.keys("c")
    b.wait("return !document.querySelector('#toast').hidden")
    equal(b.text("#toast"), "Copied 4 frames.", "what is said")
    no_error(b)


@test
def the_axis_has_the_clock_of_the_page_in_any_zone():
    b, data = browser(), Data(page("heat", "2000", "120"))
    heat = data.json["heat"]
    first = time.strftime("%H:%M:%S", time.gmtime(heat["real_ms"] / 1000 + heat["zone_min"] * 60))
    try:
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            b.devtools("Emulation.setTimezoneOverride", timezoneId=zone)
            b.open(page("heat", "2000", "120"))
            equal(b.run("return Intl.DateTimeFormat().resolvedOptions().timeZone"), zone, "the reader's zone")
            x, y, _, height = b.box("#heat .scroller canvas")
            b.move(x + 62, y + height - 26)  # the lowest row of the first column
            check(first in b.text("#tip"), f"in {zone} the page says {b.text('#tip')}, not {first}")
            no_error(b)
    finally:
        b.devtools("Emulation.setTimezoneOverride", timezoneId="")


@test
def a_range_of_the_heat_map_is_shown():
    b, data = browser(), Data(page("heat", "2000", "120"))
    b.open(page("heat", "2000", "120"))
    x, y, width, height = b.box("#heat .scroller canvas")
    b.drag(x + 300, y + height * 0.5, x + 420, y + height * 0.2)
    begin, end = map(int, re.search(r"range=(\d+)-(\d+)", b.hash()).groups())
    samples = data.range_samples(begin, end)
    check(0 < samples < data.total, f"{samples} of {data.total} samples")
    check(f"{samples:,} samples" in b.text("#range-text"), b.text("#range-text"))
    check(f"{samples:,} samples" in b.text("#tip"), f"the range has {samples} samples, the tip says {b.text('#tip')}")
    b.run("document.querySelector('main').scrollIntoView({block: 'end'})")
    b.settle()
    press_root_child(b, row=0)
    check(f"{samples:,} samples" in b.text("#chosen-weight"), b.text("#chosen-weight"))
    picture(b, "heat-range")
    address = b.hash()
    b.run("scrollTo(0, 0)")
    b.click("#compare")
    b.drag(x + 700, y + height * 0.5, x + 820, y + height * 0.2)
    check("base=" in b.hash(), b.hash())
    check(b.seen('[data-column="change"]'), "the table has no changes")
    check("grew" in b.text("#legend"), b.text("#legend"))
    picture(b, "heat-compared")
    b.open(page("heat", "2000", "120"), address)
    check(f"{samples:,} samples" in b.text("#range-text"), "the address does not keep the range")
    b.click("#range-clear")
    equal(b.hash(), "", "the address")
    no_error(b)


@test
def a_range_is_selected_with_keys():
    b = browser()
    b.open(page("heat", "2000", "120"))
    b.run("document.querySelector('#heat .scroller canvas').focus()")
    b.keys("ArrowRight", "Shift+ArrowRight", "Shift+ArrowUp")
    equal(b.hash(), "#range=50-102", "the address")
    no_error(b)


@test
def incident_pages_say_what_changed():
    b = browser()
    b.open(page("incident", "2000", "120"))
    check(b.seen("#changes li") and b.seen("#facts dd"), "changes or facts are not shown")
    tabs = b.run("return [...document.querySelectorAll('[role=tab]')].map((e) => e.textContent)")
    equal(tabs, ["Functions", "Units", "Commands"], "the tables")
    b.run("document.querySelectorAll('[role=tab]')[1].click()")
    rows = b.run("return [...document.querySelectorAll('.frames button.name')].map((e) => e.textContent)")
    check("shop-api.service" in rows, f"the units are {rows}")
    no_error(b)


def frame_ms(where, step):
    """The median and the longest time between frames, in each of which the script does a step `n`."""
    times = where.post("/execute/async", args=[], script=f"""
        const done = arguments[0], times = [];
        let last = performance.now(), n = 0;
        const step = () => {{
            const now = performance.now();
            times.push(now - last);
            last = now;
            {step};
            if (n++ < 30) requestAnimationFrame(step); else done(times.slice(1).sort((a, b) => a - b));
        }};
        requestAnimationFrame(step);
    """)
    return f"{times[15]:.0f} ms, the longest {times[-1]:.0f} ms"


def print_opening(where, path, what):
    """Figures to be read: how long it takes depends on the machine, so nothing is asserted."""
    where.post("/url", url="about:blank")
    began = time.monotonic()
    where.open(path)
    print(f"# {what}: {os.path.getsize(path) / 1e6:.1f} MB, drawn {time.monotonic() - began:.2f} s after it was asked for")


@test
def two_hundred_thousand_stacks_can_be_used():
    b, path = browser(), page("flame", "200000")
    print_opening(b, path, "200,000 stacks")
    no_error(b)
    picture(b, "many")
    press_root_child(b, row=3, share=0.05)
    check("zoom=" in b.hash(), b.hash())
    b.keys("Escape", "2")
    press_root_child(b, share=0.01)
    check(b.seen("#chosen-name"), "nothing is selected")
    b.open(path, "#q=malloc")
    check("matched" in b.text("#matched"), b.text("#matched"))
    b.open(path)
    scrolls = frame_ms(b, "document.querySelector('#pane-a .scroller').scrollTop += n % 2 ? 7 : -7")
    x, y, width, height = flame_box(b)
    zooms = frame_ms(b, f"""
        const canvas = document.querySelector('#pane-a canvas');
        if (n % 2)
            canvas.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Escape', bubbles: true}}));
        else
            canvas.dispatchEvent(new MouseEvent('click', {{bubbles: true, clientX: {x + width * 0.1}, clientY: {y + height - 74}}}))""")
    print(f"# half of the frames take at most: scrolling {scrolls}; zooming in and out {zooms}")
    no_error(b)


@test
def an_hour_of_eight_cpus_is_below_ten_megabytes():
    b, path = browser(), page("heat", "200000", "3600", "790")
    size = os.path.getsize(path)
    check(size < HOUR_BYTES_MAX, f"the page has {size} bytes")
    print_opening(b, path, "an hour of 8 CPUs")
    check("[other]" in b.text("#legend"), b.text("#legend"))
    x, y, _, height = b.box("#heat .scroller canvas")
    b.drag(x + 300, y + height * 0.5, x + 420, y + height * 0.2)
    check("range=" in b.hash(), b.hash())
    picture(b, "hour")
    no_error(b)


if __name__ == "__main__":
    try:
        main()
    finally:
        for opened in _browsers.values():
            opened.__exit__()
