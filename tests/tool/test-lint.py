#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lint on a small tree of our own, sound at first, then with one fault at a time: each fault
must be found, by the test that is there for it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import check, equal, main, skip, source_path, test  # noqa: E402

LICENCE = "/* SPDX-License-Identifier: LGPL-2.1-or-later */\n"
ESSAY = "\n/* " + "word " * 15 + "*/\n\n"

SOUND = {
    "lib/util/low.h": LICENCE + "#pragma once\n\n#define LOW 1\n",
    "lib/util/base.h": LICENCE + "#pragma once\n\nint base(void);\n",
    "lib/util/base.c": LICENCE + '#include "util/base.h"\n' + ESSAY
    + '#include "util/low.h"\n\n' + "int base(void) {\n    return 1;\n}\n",
    "lib/perfdata/part.h": LICENCE + "#pragma once\n\nint part(void);\n",
    "lib/perfdata/part.c": LICENCE + '#include "perfdata/part.h"\n' + ESSAY
    + '#include "util/base.h"\n\nint part(void) {\n    return base();\n}\n',
    "lib/loop/loop.c": LICENCE + ESSAY + "int loop(void);\nint loop(void) {\n    return 0;\n}\n",
    "daemon/keeper/request/keeper-client.h": LICENCE + "#pragma once\n\nint keeper(void);\n",
    "daemon/keeper/request/keeper-client.c": LICENCE + '#include "keeper/request/keeper-client.h"\n' + ESSAY
    + "int keeper_inner(void);\nint keeper_inner(void) {\n    return 0;\n}\n\n"
    "int keeper(void) {\n    return keeper_inner();\n}\n",
    "daemon/capture/ring.c": LICENCE + ESSAY + '#include "keeper/request/keeper-client.h"\n\n'
    "int ring(void);\nint ring(void) {\n    return keeper();\n}\n",
    **{f"{room}/README.md": "a line\n" * 12
       for room in ("lib/util", "lib/perfdata", "lib/loop", "daemon/keeper/request", "daemon/capture")},
    "tests/unit/test-part.c": LICENCE + '#include "perfdata/part.h"\n\n'
    "int main(void) {\n    return part();\n}\n",
}


class Tree:
    def __init__(self, folder):
        self.folder = folder
        for path in ("tests/lint/layers.table", ".clang-format"):
            with open(source_path(path), encoding="utf-8") as file:
                self.write(path, file.read())
        with open(source_path("tests/lint/layers.table"), encoding="utf-8") as file:
            self.write("ARCHITECTURE.md", file.read())
        for path, text in SOUND.items():
            self.write(path, text)

    def write(self, path, text):
        full = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def change(self, path, old, new):
        text = SOUND[path].replace(old, new)
        check(text != SOUND[path], f"{path} holds no {old!r}")
        self.write(path, text)

    def compile(self):
        build = os.path.join(self.folder, "build")
        os.makedirs(build, exist_ok=True)
        commands = []
        for folder, _, names in os.walk(self.folder):
            for name in names:
                source = os.path.relpath(os.path.join(folder, name), self.folder)
                if not name.endswith(".c") or source.startswith("tests"):
                    continue
                output = source.replace("/", "_") + ".o"
                subprocess.run(["cc", "-Ilib", "-Idaemon", "-w", "-c", source, "-o",
                                os.path.join("build", output)], cwd=self.folder, check=True)
                commands.append({"file": "../" + source, "output": output,
                                 "command": f"cc -Wall -I../lib -I../daemon -MD -MQ {output} -MF {output}.d -o {output} "
                                            f"-c ../{source}"})
        with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump(commands, file)

    def failures(self, script, *arguments):
        said = subprocess.run(
            [sys.executable, source_path("tests", "lint", script), *arguments], capture_output=True, text=True,
            env={**os.environ, "PROFD_SOURCE": self.folder,
                 "PROFD_BUILD": os.path.join(self.folder, "build")}, check=False)
        check("1.." in said.stdout, said.stdout + said.stderr)
        return set(re.findall(r"^not ok \d+ - (\w+)", said.stdout, re.M)), said.stdout


def finds(script, name, *faults):
    """Each fault is (path, what is there, what is there instead) or (path, new file)."""
    for fault in faults:
        with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
            tree = Tree(folder)
            if len(fault) == 3:
                tree.change(*fault)
            else:
                tree.write(*fault)
            if script in ("layers.py", "circles.py"):
                tree.compile()
            failed, said = tree.failures(script)
            check(failed == {name}, f"{fault} failed {failed or 'nothing'}\n{said}")


@test
def a_sound_tree_passes():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        tree = Tree(folder)
        tree.compile()
        for script in ("circles.py", "layers.py", "source.py"):
            failed, said = tree.failures(script)
            check(not failed, said)


@test
def an_include_against_the_table_is_found():
    finds("layers.py", "every_include_is_in_the_table",
          ("lib/util/base.c", "#include", '#include "perfdata/part.h"\n#include'),
          ("lib/perfdata/part.c", "util/base.h", "../util/base.h"),
          ("daemon/keeper/request/keeper-client.c", "#include", "#include <event2/event.h>\n#include"),
          ("daemon/capture/ring.c", "#include", "#include <zstd.h>\n#include"))


@test
def a_symbol_against_the_table_is_found():
    finds("layers.py", "every_symbol_comes_from_a_room_that_may_be_included",
          ("lib/util/base.c", "return 1", "extern int part(void); return part()"),
          ("lib/loop/loop.c", "return 0", "extern int keeper(void); return keeper()"),
          ("daemon/capture/ring.c", "return keeper", "extern int keeper_inner(); return keeper_inner"))


@test
def a_room_that_the_table_lacks_is_found():
    finds("layers.py", "every_folder_of_sources_is_a_room",
          ("daemon/store/deep/deeper/x.c", LICENCE + ESSAY + "int x;\n"))


@test
def files_and_folders_that_need_each_other_are_found():
    finds("circles.py", "no_files_of_a_folder_need_each_other",
          ("lib/util/low.h", "#define", '#include "util/base.h"\n\n#define'))
    finds("circles.py", "no_folders_need_each_other",
          ("lib/util/high.h", LICENCE + '#pragma once\n\n#include "perfdata/part.h"\n'),
          ("lib/util/high.c", LICENCE + ESSAY + "extern int part(void);\nint high(void);\n"
           "int high(void) {\n    return part();\n}\n"))


@test
def a_folder_with_too_many_sources_is_found():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        tree = Tree(folder)
        for i in range(15):
            tree.write(f"lib/util/more-{i}.c", LICENCE + ESSAY + f"int more{i};\n")
        tree.compile()
        failed, said = tree.failures("circles.py")
        check(failed == {"no_folder_has_more_than_15_sources"}, said)


@test
def a_room_without_a_page_or_with_a_long_one_is_found():
    finds("circles.py", "every_room_has_a_short_readme",
          ("lib/util/README.md", "a line\n"), ("lib/loop/README.md", "a line\n" * 26))


@test
def a_duplicate_file_name_is_found():
    finds("circles.py", "no_two_sources_share_a_name",
          ("lib/perfdata/base.c", LICENCE + ESSAY + "int another;\n"))


@test
def a_table_missing_from_architecture_md_is_found():
    finds("layers.py", "architecture_md_shows_the_table", ("ARCHITECTURE.md", "Rooms\n"))


@test
def an_ignored_failure_of_jansson_is_found():
    for line in ('(void)json_object_set_new(o, "a", v);', "json_array_append(a, v);"):
        finds("source.py", "no_failure_of_jansson_is_ignored",
              ("lib/util/base.c", "    return 1;", f"    {line}\n    return 1;"))
    finds("source.py", "no_failure_of_jansson_is_ignored",
          ("client/x.c", LICENCE + ESSAY + "void *x = json_string(word);\n"))


@test
def a_json_pack_of_a_text_that_need_not_be_utf8_is_found():
    for call in ('"{s:s}", "name", name', '"{s:i, s:[s, s]}", "n", 1, "list", "a", b', '"{ss*}", "x", *t ? t : NULL',
                 '"[s]", strerror(error)'):
        finds("source.py", "texts_in_a_json_pack_are_utf8",
              ("client/x.c", LICENCE + ESSAY + f"void *x = json_pack({call});\n"))


@test
def a_static_function_without_the_name_of_its_module_is_found():
    finds("source.py", "static_functions_begin_with_the_name_of_their_module",
          ("client/x.c", LICENCE + ESSAY + "static int add(void) {\n    return 1;\n}\n"))


@test
def a_page_that_is_too_long_is_found():
    finds("source.py", "pages_for_newcomers_are_short", ("HACKING.md", "a line\n" * 121))


@test
def a_missing_licence_is_found():
    finds("source.py", "every_source_names_its_licence",
          ("lib/util/base.h", "SPDX-License-Identifier", "Licence"))


@test
def a_missing_essay_is_found():
    finds("source.py", "every_c_file_opens_with_an_essay", ("lib/util/base.c", ESSAY, "\n"))


@test
def a_line_comment_is_found_but_not_within_a_string():
    finds("source.py", "there_are_no_line_comments",
          ("lib/util/base.c", "return 1;", "return 1; // why"))
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        tree = Tree(folder)
        tree.change("lib/util/base.c", "return 1", 'return *"a//b" /* c//d */')
        check(not tree.failures("source.py")[0], tree.failures("source.py")[1])


@test
def a_warning_of_the_other_compiler_is_found():
    if not shutil.which("clang"):
        skip("clang is not installed")
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        tree = Tree(folder)
        # gcc says nothing of it.
        for body, failed in (("return 1", set()), ("int x = 1; x = x; return x", {"everything_compiles_under_clang"})):
            tree.write("lib/util/base.c", SOUND["lib/util/base.c"].replace("return 1", body))
            tree.compile()
            found, said = tree.failures("compilers.py", "gcc")
            equal(found, failed, said)
            check(not failed or "explicitly assigning" in said, said)


@test
def a_todo_is_found():
    finds("source.py", "there_is_no_todo",
          ("lib/util/base.c", "word word */", "TO" + "DO */"))


@test
def a_private_path_is_found():
    finds("source.py", "no_private_path_is_named",
          ("lib/util/base.c", "word word */", "/ho" + "me/somebody */"))


@test
def a_function_of_more_than_a_hundred_lines_is_found():
    finds("source.py", "functions_are_short",
          ("lib/util/base.c", "    return 1;\n", "    base();\n" * 110 + "    return 1;\n"))


@test
def a_function_of_a_header_that_nobody_calls_is_found():
    finds("source.py", "every_function_of_a_header_is_called",
          ("tests/unit/test-part.c", "return part()", "return 0"),
          ("tests/unit/test-part.c", "return part();", 'return 0; /* part() */'),
          ("tests/unit/test-part.c", "return part()", 'return *"part()"'),
          ("lib/util/base.h", "int base(void);", "int base(void);\nconst char *also(int a, int b) _printf_(1, 2);"),
          ("lib/util/base.h", "int base(void);", "DEFINE_CLEANUP(int *, base_free);\nint *base_free(int *base);"))


@test
def a_source_with_another_layout_is_found():
    finds("source.py", "every_c_file_is_laid_out_by_clang_format",
          ("lib/util/base.c", "    return 1;", "  return 1;"))


if __name__ == "__main__":
    main()
