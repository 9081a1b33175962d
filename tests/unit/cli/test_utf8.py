"""Names beyond ASCII in every locale: no crash, the same files, aligned tables, commands that name what is meant."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate import text as terminal
from migrate.apply.signatures import read_signatures, signatures_path
from migrate.plan.file import read_plan, write_plan
from migrate.plan.plan import Plan
from migrate.text import cells, output_takes, shell_word
from tests.builders import make_plan, make_row
from tests.integration.cli import REPOSITORY
from tests.unit.folders import held

GROUP, PLAN_NAME = "café-日本", "pläne-日.plan"
UTF8 = {"LC_ALL": "C.UTF-8"}
FORCED = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
WORST = "C, and Python is not to mend it"
LOCALES = {"C": {"LC_ALL": "C"}, WORST: {"LC_ALL": "C", **FORCED}, "none, and Python is not to mend it": FORCED}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "wörk-日本"
    made.mkdir()
    write_plan(plan(), made / PLAN_NAME)
    return made


def plan() -> Plan:
    rows = [make_row(GROUP), make_row(GROUP, partition=1), make_row("refunds"), make_row("ünïted", "bestellungen-ä")]
    return make_plan(rows)


def ran(folder: Path, locale: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[bytes]":
    dropped = ("LANG", "LANGUAGE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE")
    settings = {k: v for k, v in os.environ.items() if k not in dropped and not k.startswith(("LC_", "MM2_MIGRATE_"))}
    settings |= {"PYTHONPATH": str(REPOSITORY), **locale}
    command = [sys.executable, "-m", "migrate", *words]
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr and b"Unexpected" not in done.stderr, done
    return done


COMMANDS = (
    ("show", PLAN_NAME),
    ("show", PLAN_NAME, "--format", "kcg"),
    ("show", PLAN_NAME, "--group", "nirgends-ä"),
    ("show", PLAN_NAME, "--diff", PLAN_NAME),
    ("explain", PLAN_NAME, GROUP, "--fence", "--principal", "User:Zoë"),
    ("report", PLAN_NAME, "--out", "bericht-ä.html", "--source", "Ä"),
    ("plan", "--out", "nirgends-ä/x.plan", "--mm2-config", "fehlt-ä.properties", "--source", "Ä", "--target", "B"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: ascii(" ".join(words)))
def test_what_a_command_says_and_writes_is_the_same_where_ascii_is_all_there_is(folder, words):
    expected = ran(folder, UTF8, *words)
    said = expected.stdout + expected.stderr
    assert not said.isascii() or b"\\u65e5" in said
    files = held(folder)
    done = ran(folder, LOCALES[WORST], *words)
    assert (done.returncode, done.stdout, done.stderr) == (expected.returncode, expected.stdout, expected.stderr)
    assert held(folder) == files


@pytest.mark.parametrize("locale", LOCALES)
def test_a_signature_has_the_name_and_the_note_as_they_were_typed(folder: Path, locale: str) -> None:
    done = ran(folder, LOCALES[locale], "sign", PLAN_NAME, "--by", "Zoë Müller", "--note", "Grüße, 日本")
    assert done.returncode == 0 and "SIGNED by Zoë Müller" in done.stdout.decode()
    file = signatures_path(folder / PLAN_NAME, plan().fingerprint)
    (signature,) = read_signatures(file, plan().fingerprint)
    assert (signature.name, signature.note) == ("Zoë Müller", "Grüße, 日本")
    assert read_plan(folder / PLAN_NAME) == plan()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_where_the_output_lacks_characters_the_table_is_aligned_all_the_same(folder: Path, encoding: str) -> None:
    shown = ran(folder, {**UTF8, "PYTHONIOENCODING": encoding}, "show", PLAN_NAME).stdout.decode(encoding)
    assert r"\u65e5\u672c" in shown
    blocks = shown.split("\n\n")
    tables = [b.splitlines() for b in blocks if " DECISION " in b and " set " in b]
    assert len(tables) == 3, shown
    for table in tables:
        heading = next(line for line in table if line.startswith("GROUP  "))
        rows = [line for line in table if " set " in line]
        assert rows and {line.index(" set ") for line in rows} == {heading.index(" DECISION")}, shown


def test_whatever_the_output_has_programs_read_utf_8_and_commands_name_the_same_group(folder):
    latin = {**UTF8, "PYTHONIOENCODING": "latin-1"}
    for form in ("csv", "kcg", "json", "jsonl"):
        words = ("show", PLAN_NAME, "--format", form)
        assert ran(folder, latin, *words).stdout == ran(folder, UTF8, *words).stdout, form
    told = ran(folder, latin, "explain", PLAN_NAME, GROUP, "--fence").stdout.decode("latin-1")
    line = next(line for line in told.splitlines() if "--deny-principal" in line)
    word = line.partition("--group ")[2].split(" ")[0]
    read = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout.decode()
    assert read == GROUP


def test_what_is_printed_escaped_takes_the_columns_of_its_escape(monkeypatch) -> None:
    monkeypatch.setattr(terminal, "_encoding", ["ascii"])
    output_takes("ANSI_X3.4-1968")
    for text in ("é", "日本", "a\u0301", "\U0001f600", "plain"):
        assert cells(text) == len(text.encode("ascii", "backslashreplace")), text
    assert shell_word("é") == r"$'\xc3\xa9'" and shell_word("a b") == "'a b'"


def test_java_is_told_of_utf_8_where_the_locale_is_c(folder: Path) -> None:
    code = "import os; from migrate.cli.console import take_utf8; take_utf8(); print(os.environ.get('LC_ALL'))"
    for given, expected in (("C", "C.UTF-8"), ("POSIX", "C.UTF-8"), ("C.UTF-8", "C.UTF-8")):
        settings = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LC_ALL": given}
        done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=60)
        assert done.stdout == f"{expected}\n", done
