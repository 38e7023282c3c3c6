#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lint of pages, completions, configuration and catalog, on programs that only print tables: sound at
first, then with something more, less or different in one place, which must be found."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import check, equal, main, source_path, test  # noqa: E402

OPTIONS = """*\t-h\t--help\t\tShow this help
dump\t\t\tFILE\tShow every record
dump\t-t\t--type\tTYPE\tOnly these types
help\t\t\t\tExplain
"""

HELP = "-h --help -t --type Show this help Show every record Only these types Explain\n"

PAGE = """.\\" SPDX-License-Identifier: LGPL-2.1-or-later
.Dd January 1, 2026
.Dt PROFCTL 1
.Os
.Sh NAME
.Nm profctl
.Nd show recordings
.Sh OPTIONS
.Bl -tag -width Ds
.It Fl h , Fl -help
Help.
.El
.Sh COMMANDS
.Bl -tag -width Ds
.It Cm dump Ar file
Show.
.Bl -tag -width Ds
.It Fl t , Fl -type Ns = Ns Ar type
Choose.
.El
.It Cm help
Explain.
.El
"""

KEYS = """Profd\tFlush\t5s\ta time
Profd\tMaxUse\t\ta size
Session\tFrequency\t99\ta number
Session\tMaxUse\tinfinity\ta size
"""
CONF = """[Profd]
#Flush=5s
#MaxUse=

[Session default]
#Frequency=99
#MaxUse=infinity
"""
KEYS_PAGE = """.Sh DESCRIPTION
.Ss [Profd]
.It Va Flush Ns =
The default is 5s.
.It Va MaxUse Ns =
x
.Ss [Session NAME]
.It Va Frequency Ns =
The default is
.Cm 99 .
.It Va MaxUse Ns =
.Cm infinity ,
the default.
"""
DAEMON_HELP = "  --store=DIR  where\n  --help  this\n"
DAEMON_PAGE = ".It Fl -store Ns = Ns Ar DIR\n.It Fl -help\n.It Li began , ended\nof what is\n"

ONE, TWO = "1" * 32, "2" * 32
EVENTS = f"""static const Event events[] = {{
    {{ "began", "{ONE}" }},
    {{ "ended", "{TWO}" }},
}};
"""
LOGGING = """log({"PROFD_EVENT", "began"}, {"PROFD_NAME", name});
log({"PROFD_EVENT", "ended"});
"""
CATALOG = "".join(f"""# {name}
-- {number}
Subject: It @PROFD_NAME@
Defined-By: profd
Documentation: man:profd(8)

Nothing needs to be done.

""" for name, number in (("began", ONE), ("ended", TWO)))


def write(folder, path, text, mode=0o644):
    full = os.path.join(folder, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(full, mode)


def program(answers):
    cases = "".join(f"*{word}*) cat <<'END'\n{text}END\n;;\n" for word, text in answers)
    return f'#!/bin/sh\ncase "$*" in\n{cases}esac\n'


def complete(folder, options):
    """The real generator on a table of its own."""
    write(folder, "table", program([("--print-options", options)]), 0o755)
    for shell, name in (("bash", "profctl.bash"), ("zsh", "_profctl"), ("fish", "profctl.fish")):
        said = subprocess.run(
            [source_path("client", "completion", "generate.py"), shell,
             os.path.join(folder, "table")], capture_output=True, text=True, check=True)
        write(folder, f"build/client/completion/{name}", said.stdout)


GATEWAY_HELP = "  --help  show this\n"
GATEWAY_KEYS = "Send\tShare\t100%\ta percentage\n"
GATEWAY_CONF = "#[Send example]\n#Share=100%\n"
GATEWAY_KEYS_PAGE = ".Sh X\n.Ss [Send NAME]\n.It Va Share Ns =\nThe default is 100%\n"
GATEWAY_PAGE = ".It Fl -help\n"


def write_gateway(folder, keys=GATEWAY_KEYS, conf=GATEWAY_CONF, keys_page=GATEWAY_KEYS_PAGE, page=GATEWAY_PAGE,
                  completion=GATEWAY_HELP):
    write(folder, "build/gateway/profd-gateway",
          program([("--print-config-keys", keys), ("--help", GATEWAY_HELP)]), 0o755)
    write(folder, "conf/gateway.conf", conf)
    write(folder, "doc/gateway.conf.5", keys_page)
    write(folder, "doc/profd-gateway.8", page)
    for name in ("profd-gateway.bash", "_profd-gateway", "profd-gateway.fish"):
        write(folder, f"build/gateway/{name}", completion)


METHODS = """
    { "Ping",   RIGHT_ANYONE, METHOD_PLAIN, false, method_ping   },
    { "Follow", RIGHT_READ,   METHOD_PLAIN, false, method_follow },
    { "Stop",   RIGHT_ADMIN,  METHOD_PLAIN, true,  method_stop   },
"""
READERS = 'static const char *const readers[] = {\n    "Follow", "Ping",\n};\n'


@contextlib.contextmanager
def tree(options=OPTIONS, said=HELP, page=PAGE, completed=OPTIONS, keys=KEYS, conf=CONF,
         keys_page=KEYS_PAGE, daemon_help=DAEMON_HELP, daemon_page=DAEMON_PAGE, events=EVENTS,
         logging=LOGGING, catalog=CATALOG, methods=METHODS):
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        write(folder, "build/client/profctl",
              program([("--print-options", options), ("--help", said)]), 0o755)
        write(folder, "build/daemon/profd",
              program([("--print-config-keys", keys), ("--help", daemon_help)]), 0o755)
        for name in ("profd.bash", "_profd", "profd.fish"):
            write(folder, f"build/daemon/{name}", daemon_help)
        write(folder, "doc/profctl.1", page)
        write(folder, "doc/profd.conf.5", keys_page)
        write(folder, "doc/profd.8", daemon_page)
        write(folder, "conf/profd.conf", conf)
        write(folder, "daemon/program/log-event.c", events)
        write(folder, "daemon/daemon.c", logging)
        write(folder, "daemon/method/method.c", methods)
        write(folder, "client/remote/remote-error.c", READERS)
        write(folder, "systemd/profd.catalog", catalog)
        complete(folder, completed)
        yield folder


def failures(folder, script):
    said = subprocess.run(
        [sys.executable, source_path("tests", "lint", script)], capture_output=True, text=True,
        env={**os.environ, "PROFD_SOURCE": folder, "PROFD_BUILD": os.path.join(folder, "build")},
        check=False)
    check("1.." in said.stdout, said.stdout + said.stderr)
    failed = set(re.findall(r"^not ok \d+ - (\w+)", said.stdout, re.M))
    # These pages are scraps; mandoc has more to say of them than is meant here.
    return failed - {"the_pages_pass_mandoc"}, said.stdout


def finds(script, wanted, **fault):
    with tree(**fault) as folder:
        failed, said = failures(folder, script)
        check(wanted in failed, f"{fault} failed {failed or 'nothing'}\n{said}")


@test
def sound_tables_pass():
    with tree() as folder:
        for script in ("manual.py", "config.py", "journal.py"):
            failed, said = failures(folder, script)
            check(not failed, said)


@test
def faults_in_tables_of_the_gateway_are_found():
    with tree() as folder:
        write_gateway(folder)
        equal(failures(folder, "config.py")[0], set(), "what fails for a sound gateway")
    for wanted, fault in (
            ("configuration_files_show_every_key_with_its_default", {"conf": "#[Send example]\n#Share=50%\n"}),
            ("configuration_files_show_every_key_with_its_default", {"keys": ""}),
            ("pages_of_configuration_files_have_every_key", {"keys_page": ".Ss [Gateway]\n"}),
            ("pages_of_daemons_have_every_option", {"page": ".It Fl -halp\n"}),
            ("completions_of_daemons_have_every_option", {"completion": "--halp"})):
        with tree() as folder:
            write_gateway(folder, **fault)
            check(wanted in failures(folder, "config.py")[0], f"{fault} is not found")


@test
def an_option_that_help_lacks_is_found():
    finds("manual.py", "help_names_every_option", said=HELP.replace("--type", ""))
    finds("manual.py", "help_names_every_option", said=HELP.replace("Only these", ""))


@test
def an_option_that_the_page_lacks_is_found():
    finds("manual.py", "the_page_names_every_command_and_option",
          page=PAGE.replace("Fl -type", "Fl -kind"))
    finds("manual.py", "the_page_names_every_command_and_option", page=PAGE.replace("Fl t ,", ""))
    finds("manual.py", "the_page_names_every_command_and_option",
          page=PAGE.replace(".It Cm help", ".It Cm hulp"))


@test
def an_option_that_only_the_page_has_is_found():
    finds("manual.py", "the_page_names_no_unknown_command_or_option", page=PAGE.replace("Fl t ,", "Fl t , Fl x ,"))


@test
def a_method_that_profctl_takes_for_another_group_is_found():
    for name, right in ("Follow", "ADMIN"), ("Stop", "READ"):
        finds("manual.py", "profctl_names_the_group_that_a_method_needs",
              methods=re.sub(rf'("{name}", +RIGHT_)\w+', rf"\g<1>{right}", METHODS))


@test
def a_bad_page_is_found_by_mandoc():
    with tree(page=PAGE.replace(".El\n", "")) as folder:
        said = failures(folder, "manual.py")[1]
        check("not ok 5 - the_pages_pass_mandoc" in said or "SKIP" in said, said)


@test
def an_option_that_completions_lack_is_found():
    less = OPTIONS.replace("--type", "--kind")
    for name in ("completions_contain_every_command_and_option", "completions_contain_nothing_else",
                 "bash_offers_every_command_and_option"):
        finds("manual.py", name, completed=less)


@test
def a_key_that_the_file_lacks_or_shows_wrongly_is_found():
    name = "configuration_files_show_every_key_with_its_default"
    finds("config.py", name, conf=CONF.replace("#Flush", "#Flash"))
    finds("config.py", name, conf=CONF.replace("99", "98"))
    finds("config.py", name, conf=CONF + "#More=1\n")
    finds("config.py", name, conf=CONF.replace("#MaxUse=infinity\n", ""))
    finds("config.py", name, conf=CONF.replace("#Flush=5s\n#MaxUse=\n", "#MaxUse=\n#Flush=5s\n"))
    finds("config.py", name, conf=CONF + "#Frequency=99\n")
    finds("config.py", name, keys="")


@test
def a_key_that_the_page_lacks_is_found():
    name = "pages_of_configuration_files_have_every_key"
    finds("config.py", name, keys_page=KEYS_PAGE.replace("Flush", "Flash"))
    finds("config.py", name, keys_page=KEYS_PAGE.replace("99", "98"))
    finds("config.py", name, keys_page=KEYS_PAGE.replace(".Ss [Session NAME]\n", ""))


@test
def an_option_of_profd_that_the_page_lacks_is_found():
    finds("config.py", "pages_of_daemons_have_every_option",
          daemon_page=DAEMON_PAGE.replace("store", "shop"))
    finds("config.py", "pages_of_daemons_have_every_option", daemon_help="  --help  this\n")


@test
def an_option_of_profd_that_a_completion_lacks_is_found():
    for name in ("profd.bash", "_profd", "profd.fish"):
        with tree() as folder:
            write(folder, f"build/daemon/{name}", "--help\n")
            failed, said = failures(folder, "config.py")
            check("completions_of_daemons_have_every_option" in failed, said)


@test
def an_event_with_the_number_of_another_is_found():
    name = "each_event_has_a_name_and_a_number_of_its_own"
    finds("journal.py", name, events=EVENTS.replace(TWO, ONE))
    finds("journal.py", name, events=EVENTS.replace("ended", "began"))
    finds("journal.py", name, events=EVENTS.replace(TWO, "2"))


@test
def an_event_without_a_text_is_found():
    name = "each_event_has_a_text_in_the_catalog"
    finds("journal.py", name, catalog=CATALOG.partition("# ended")[0])
    finds("journal.py", name, events=EVENTS.replace(TWO, "3" * 32))
    finds("journal.py", name, catalog=CATALOG + CATALOG)


@test
def a_text_that_is_too_short_is_found():
    name = "each_text_is_long_enough_and_uses_logged_fields"
    finds("journal.py", name, catalog=CATALOG.replace("Defined-By: profd\n", ""))
    finds("journal.py", name, catalog=CATALOG.replace("profd(8)", "lost(8)"))
    finds("journal.py", name, catalog=CATALOG.replace("Nothing needs to be done.", ""))
    finds("journal.py", name, catalog=CATALOG.replace("NAME@", "PLACE@"))
    finds("journal.py", name, catalog=CATALOG.replace("Nothing", "Nothing " * 20))


@test
def an_event_that_the_page_lacks_is_found():
    finds("journal.py", "each_event_is_in_the_manual", daemon_page=DAEMON_PAGE.replace(", ended", ""))


@test
def an_event_that_is_logged_nowhere_or_unknown_is_found():
    name = "exactly_the_listed_events_are_logged"
    finds("journal.py", name, logging=LOGGING.replace("ended", "gone"))
    finds("journal.py", name, events=EVENTS.replace("ended", "gone"))


if __name__ == "__main__":
    main()
