"""The command line: what every command has, and what the commands on a plan file refuse."""

import platform
import re
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import click
import confluent_kafka
import pytest
from click import Argument, Group

from migrate import __version__
from migrate.cli import version
from migrate.cli.main import CommandGroup, cli
from migrate.cli.options import NEVER_FROM_ENVIRONMENT, options_of
from migrate.errors import EnvironmentLacks
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan, write_plan
from migrate.plan.plan import approves
from migrate.spark.java import java_version
from tests.builders import make_plan
from tests.unit.commands import clusters, run

# A group's commands go by both words.
COMMANDS = {
    f"{name} {own}".strip(): each
    for name, command in sorted(cli.commands.items())
    for own, each in (command.commands if isinstance(command, Group) else {"": command}).items()
}
ROOT = Path(__file__).parents[3]
README, REFERENCE = ((ROOT / page).read_text() for page in ("README.md", "docs/commands.md"))


def needed_words(parameter):
    """What a test types for a parameter that has no default."""
    if not parameter.required:
        return []
    value = getattr(parameter.type, "choices", ["given"])[0]
    return [value] if isinstance(parameter, Argument) else [parameter.opts[0], value]


@pytest.mark.parametrize(
    ("known", "name"),
    [(of, name) for of in (cli, *cli.commands.values()) if isinstance(of, CommandGroup) for name in of.known.functions],
)
def test_a_command_that_python_calls_has_the_defaults_of_the_one_that_is_typed(known, name):
    asked, command = known.known.function(name).__annotations__["options"], known.commands[name]
    words = [word for parameter in command.params for word in needed_words(parameter)]
    typed = options_of(asked, command.make_context(name, words).params)
    assert typed == asked(**{each.name: getattr(typed, each.name) for each in fields(asked) if each.default is MISSING})


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_and_the_reference_name_every_command(command):
    """The extras' commands have pages of their own, and are in the front page's table."""
    for page in (README, REFERENCE) if command.split()[0] not in cli.extras else (README,):
        assert re.search(rf"(`|mm2-migrate ){command}\b", page)


def test_help_shows_the_cutover_in_the_order_of_the_night_and_the_extras_under_their_own_heading():
    shown = run("--help").stdout
    core, _, extras = shown.partition("\nCommands:\n")[2].partition("\nExtras")
    night = ["doctor", "status", "plan", "show", "explain", "report", "sign", "apply", "verify", "rollback", "mm2"]
    assert re.findall(r"^  (\w+)  ", core, re.M) == night
    assert re.findall(r"^  (\w+)  ", extras.partition("Exit codes")[0], re.M) == list(cli.extras)


def test_help_before_a_command_is_as_help_behind_it():
    for command in ("", "plan", "mm2", "mm2 offsets"):
        before, behind = run("help", *command.split()), run(*command.split(), "--help")
        assert (before.exit_code, before.stdout) == (0, behind.stdout) and "Usage:" in before.stdout
    assert run("help", "nonesuch").exit_code == 2


@pytest.mark.parametrize(("typed", "offered"), {
    "mm2-migrate mm2 ": ["offsets"],
    "mm2-migrate help pl": ["plan"],
    "mm2-migrate plan --commits": ["--commits-from", "--commits-as-of"],
    "mm2-migrate show --only b": ["block", "bounded"],
    "mm2-migrate show ": [""],
}.items())  # fmt: skip
def test_bash_completes_commands_options_and_choices_and_leaves_files_to_itself(typed, offered):
    asked = {"_MM2_MIGRATE_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    found = [line.split(",", 1) for line in run(**asked).stdout.splitlines()]
    assert [word for _, word in found] == offered
    assert {kind for kind, _ in found} == ({"plain"} if offered != [""] else {"file"})


def test_help_has_a_commands_own_options_first_then_those_that_it_shares_in_named_sections():
    shown = run("plan", "--help").stdout
    order = ("\nOptions:\n", "--out PLAN", "\nWhere the clusters are:\n", "--mm2-config", "\nWhich groups:\n",
             "--group ", "\nDecisions:\n", "\nComparing, and its limits:\n", "\nSpark:\n")  # fmt: skip
    at = [shown.index(words) for words in order]
    assert at == sorted(at)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help_and_one_that_decides_over_data_is_never_taken_from_the_environment(command):
    for parameter in COMMANDS[command].params:
        assert isinstance(parameter, Argument) or parameter.help, parameter.name
        assert parameter.envvar is None or not NEVER_FROM_ENVIRONMENT.intersection(parameter.opts), parameter.name
    shown = run(*command.split(), "--help")
    assert shown.exit_code == 0 and "Usage:" in shown.stdout and "\nOptions:\n  -" in shown.stdout


def file_argument(command):
    """The file that a command is about, None for one that is about none."""
    return next((p for p in command.params if isinstance(p, Argument) and isinstance(p.type, click.Path)), None)


@pytest.mark.parametrize("command", [n for n, c in COMMANDS.items() if (file := file_argument(c)) and file.required])
def test_a_path_that_leads_to_no_file_is_wrong_usage(command, tmp_path):
    wanted = [each for each in COMMANDS[command].params if each is not file_argument(COMMANDS[command])]
    words = [*command.split(), str(tmp_path / "cutovr.plan"), *(word for each in wanted for word in needed_words(each))]
    if "source_config" in {each.name for each in wanted}:
        words += clusters(tmp_path)
    shown = run(*words)
    assert (shown.exit_code, "cutovr.plan cannot be read: No such file" in shown.stderr) == (2, True), shown.output


# What 12 digits share the maker of two plans can find. A pattern with a slip in it matches no group: no exit 0 may say
# that the night is done. A cluster that is down takes a quarter of a minute: what is waited for has its line before.
@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ("apply {plan} {clusters} --execute", 2, ["--approve"]),
        ("apply {plan} {clusters} --execute --approve " + "0" * 64, 3, ["is not this plan's fingerprint"]),
        ("apply {plan} {clusters} --execute --approve {approval:.31}", 3, ["short: 32 digits", "that share 12"]),
        ("rollback {plan} {clusters} --approve {approval:.12}", 3, ["short: 32 digits", "that share 12"]),
        ("rollback {plan} {clusters}", 3, ["There is no journal"]),
        ("apply {empty} {clusters}", 3, ["no commit was inside its filters", "There is nothing to apply."]),
        ("verify {empty} {clusters}", 3, ["no commit was inside its filters", "There is nothing to verify."]),
        ("verify {plan} {clusters} --request-timeout 1", 1, ["reaching B\n", "127.0.0.1:1", "Check bootstrap"]),
        ("status {clusters} --timeout 5", 2, ["--watch"]),
        ("explain {plan}", 2, []),
        ("explain {plan} billing --principal User:app", 2, []),
        ("explain {plan} billing orders:0 --fence", 2, []),
    ],
)
def test_what_is_refused_or_out_of_reach_says_why_and_has_its_exit_code(plan_file, tmp_path, typed, code, said):
    write_plan(make_plan([]), tmp_path / "empty.plan")
    approval = read_plan(plan_file).fingerprint
    given = {"plan": plan_file, "empty": tmp_path / "empty.plan", "clusters": " ".join(clusters(tmp_path))}
    ended = run(*typed.format(**given, approval=approval).split())
    assert (ended.exit_code, ended.stdout) == (code, "") and "Traceback" not in ended.stderr
    assert all(words in ended.stderr for words in said), ended.stderr


@pytest.mark.parametrize("digits", [32, 63, 64])
def test_thirty_two_digits_or_more_approve_in_either_case_of_letters(plan_file, digits):
    plan = read_plan(plan_file)
    approval = plan.fingerprint[:digits]
    assert approves(approval, plan) and approves(approval.upper(), plan)
    other = approval[:-1] + ("0" if approval[-1] != "0" else "1")
    assert not approves(other, plan) and not approves(plan.fingerprint + "0", plan)


def test_a_copy_of_a_plan_is_refused_where_its_journal_has_another_name(plan_file, tmp_path):
    journal_path(plan_file, read_plan(plan_file).fingerprint).write_text("")
    copy = tmp_path / "copy.plan"
    copy.write_bytes(plan_file.read_bytes())
    for command in ("apply", "rollback"):
        shown = run(command, str(copy), *clusters(tmp_path))
        assert shown.exit_code == 3 and "cutover.plan" in shown.stderr


def test_a_fence_is_printed_for_the_whole_plan_or_a_group(plan_file):
    everybody = run("explain", str(plan_file), "--fence").stdout
    assert "--group billing --group refunds" in everybody and "'User:*'" in everybody
    one = run("explain", str(plan_file), "refunds", "--fence", "--principal", "User:app").stdout
    assert "--group billing" not in one and "--deny-principal User:app" in one


def test_no_command_can_dump_its_memory():
    told = "import resource, sys; sys.argv = ['x', '--version']; from migrate.cli.main import main\n"
    told += "try: main()\nfinally: print(*resource.getrlimit(resource.RLIMIT_CORE))"
    words = ["sh", "-c", 'ulimit -c unlimited 2>/dev/null; exec "$0" "$@"', sys.executable, "-c", told]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    soft, hard = map(int, done.stdout.splitlines()[-1].split())
    assert 0 <= soft <= hard < 4096, "less than a page: none is written, not even to a program that takes them"


def test_a_report_refuses_a_login_in_the_workers_address_as_every_command_does(plan_file, tmp_path):
    out = tmp_path / "r.html"
    told = run("report", str(plan_file), "--out", str(out), "--connect-url", "http://admin:hidden@connect:8083")
    assert told.exit_code == 2 and "it has a login in it" in told.output and "hidden" not in told.output
    assert not out.exists()
    assert run("report", str(plan_file), "--out", str(out), "--connect-url", "http://connect:8083").exit_code == 0
    assert "http://connect:8083" in out.read_text()


def told():
    done = run("--version")
    assert done.exit_code == 0
    return done.stdout.splitlines()


def test_it_tells_the_tool_and_all_that_it_works_with_and_what_is_missing_is_no_failure(monkeypatch):
    tool, python, spark, librdkafka, java = told()
    assert tool == f"mm2-migrate {__version__}"
    assert python.startswith(f"Python {platform.python_version()}") and spark.startswith("Spark 4.")
    assert librdkafka.startswith(f"librdkafka {confluent_kafka.libversion()[0]}")
    assert java.startswith(f"Java {java_version()}")

    def lacks():
        raise EnvironmentLacks("Java was not found.")

    monkeypatch.setattr(version, "java_version", lacks)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert told()[3].startswith("librdkafka: ") and told()[4] == "Java: Java was not found."
