#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""embed.py OUTPUT TEMPLATE FILE…: makes the template of a page a constant of C.

Styles (.css) and scripts (.js) are put into the template, each kind as one text. The policy of the
page names the hash of these texts, so that nothing else in it can be a style or a script.
"""

import base64
import hashlib
import sys
from pathlib import Path


def joined(files, suffix):
    return "\n" + "".join(path.read_text(encoding="utf-8") for path in files if path.suffix == suffix)


def policy(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def main():
    output, template, *files = map(Path, sys.argv[1:])
    style = joined(files, ".css")
    script = '\n"use strict";\n(() => {' + joined(files, ".js") + "})();\n"
    page = template.read_text(encoding="utf-8")
    for name, text in [("style-policy", policy(style)), ("script-policy", policy(script)),
                       ("style", style), ("script", script)]:
        assert page.count("{{" + name + "}}") == 1, f"{template} has no slot '{name}'"
        page = page.replace("{{" + name + "}}", text)
    data = page.encode()
    rows = [", ".join(str(byte) for byte in data[i:i + 24]) for i in range(0, len(data), 24)]
    output.write_text(
        '#include "page/page-template.h"\n\nconst unsigned char page_template[] = {\n    '
        + ",\n    ".join(rows) + f",\n}};\nconst size_t page_template_size = {len(data)};\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
