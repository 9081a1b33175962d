"""The terminal: results on stdout, one paragraph and an exit code for every error, whoever reads them."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click
import pytest

from migrate import errors
from migrate.cli.console import exit_code_of, one_paragraph
from migrate.errors import MigrateError, Refused
from migrate.plan.file import write_plan
from tests.builders import make_plan, make_row
from tests.unit.commands import run


def process(*words, **how):
    """What a process said and ended with."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60} | how
    return subprocess.run([*map(str, words)], check=False, **how)


def ran(*words, **how):
    return process(sys.executable, "-m", "migrate", *words, **how)


# What a script sees of each; 4 is of a command that ended without an error, and left something undone.
EXIT_CODES = {
    "MigrateError": 1, "ClusterError": 1, "UnreadablePlan": 1, "EnvironmentLacks": 1, "UsageError": 2, "ConfigError": 2,
    "NoSuchPlan": 2, "Refused": 3,
}  # fmt: skip


def test_each_error_has_its_exit_code_and_codes_differ():
    kinds = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, MigrateError)}
    assert {kind.__name__: kind("x").exit_code for kind in kinds} == EXIT_CODES
    assert sorted(value for name, value in vars(errors).items() if name.startswith("EXIT_")) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Refused("The plan is spent.", "Make a new\nplan."), 3, "The plan is spent. Make a new\\nplan.\n"),
        (ValueError("first\nsecond"), 1, "Unexpected ValueError: first This is a fault of mm2-migrate."),
        (ValueError(), 1, "Unexpected ValueError: (no message)"),
        (KeyboardInterrupt(), 1, "Interrupted. Run the same command again"),
        (SystemError("a signal came inside a client"), 1, "Interrupted. Run the same command again"),
    ],
)
def test_an_error_is_one_paragraph_with_its_exit_code_also_one_that_nobody_expected(error, code, said, capsys):
    @one_paragraph
    def failing() -> int:
        raise error from KeyboardInterrupt() if isinstance(error, SystemError) else None

    with pytest.raises(SystemExit) as ended:
        failing()
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (code, "")
    assert shown.err.startswith(f"mm2-migrate: {said}") and shown.err.count("\n") == 1


def test_a_stack_trace_is_shown_only_with_debug(tmp_path):
    assert "Traceback" not in run("show", str(tmp_path / "no.plan")).stderr
    assert "Traceback" in run("show", str(tmp_path / "no.plan"), "--debug").stderr


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("many", 200)])
def test_where_the_output_is_no_terminal_columns_says_how_wide_it_is(plan_file, columns, widest):
    told = ran("explain", plan_file, "billing", env=os.environ | {"COLUMNS": columns})
    assert widest // 2 < max(map(len, told.stdout.splitlines())) <= widest


def test_colour_goes_by_the_readers_word_and_is_none_in_a_pipe_by_itself(plan_file):
    assert "\x1b[" not in run("show", str(plan_file)).stdout
    assert "\x1b[" in run("show", str(plan_file), "--color", "always", NO_COLOR="1").stdout
    assert "\x1b[" not in run("show", str(plan_file)).stdout
    assert run("show", str(plan_file), "--color", "often").exit_code == 2


def test_reading_a_large_plan_is_announced_unless_it_is_to_be_quiet_and_errors_are_always(tmp_path, plan_file):
    large = tmp_path / "large.plan"
    write_plan(make_plan([make_row(f"g{os.urandom(8).hex()}", partition=i) for i in range(4000)]), large)
    shown = run("show", str(large), "--format", "kcg")
    assert f"reading {large}" in shown.stderr and "reading" not in shown.stdout
    assert run("show", str(large), "--quiet").stderr == run("show", str(plan_file)).stderr == ""
    assert "no.plan" in run("show", str(tmp_path / "no.plan"), "--quiet").stderr


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_nobody_who_reads_and_no_fault(plan_file, closed):
    told = process("sh", "-c", f'"$0" -m migrate show "$1" {closed}', sys.executable, plan_file)
    assert told.returncode == 0 and "Traceback" not in told.stderr, told.stderr


def test_what_is_said_where_nobody_hears_it_ends_nothing_and_hides_no_exit_code(plan_file):
    with Path("/dev/full").open("wb") as full:
        done = ran("show", plan_file, "--format", "kcg", stderr=full)
    assert done.returncode == 0 and "billing" in done.stdout
    master, slave = os.openpty()
    os.close(master)  # writing gets EIO from now on
    try:
        done = ran("show", plan_file, stdout=slave)
    finally:
        os.close(slave)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_pipe_is_no_error_and_hides_no_failure(plan_file):
    piped = ("bash", "-o", "pipefail", "-c")
    done = process(*piped, f"{sys.executable} -m migrate show {plan_file} | head -1")
    assert done.stderr == "" and done.stdout.count("\n") == 1
    environment = {**os.environ, "JAVA_HOME": "/nonexistent"}
    done = process(*piped, f"{sys.executable} -m migrate doctor 2>&1 | true", env=environment)
    assert done.returncode == 1 and done.stderr == ""


def test_an_error_is_wrapped_at_a_terminals_width_with_its_commands_whole_and_elsewhere_one_line(tmp_path):
    path = tmp_path / "a-folder-with-a-long-name" / "cutover.plan"
    (line,) = ran("show", path).stderr.splitlines()
    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 40, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        done = ran("show", path, stdout=slave, stderr=slave, env=environment)
        shown = os.read(master, 10_000).decode().splitlines()
    finally:
        os.close(slave)
        os.close(master)
    assert done.returncode == 2 and " ".join(map(str.strip, shown)) == line
    assert len(shown) > 3 and all(len(each) <= 40 or str(path) in each for each in shown)
    assert sum("`mm2-migrate plan`" in each for each in shown) == 1


@pytest.mark.parametrize("code", [0, 3])
def test_the_code_that_a_command_leaves_with_is_the_exit_code(code, monkeypatch):
    @click.command()
    @click.pass_context
    def leaving(context):
        context.exit(code)

    monkeypatch.setattr(sys, "argv", ["leaving"])
    assert exit_code_of(leaving) == code


HALF_MADE = """
import os, signal, sys
from pathlib import Path
from migrate.cli.console import one_paragraph, take_signals
from migrate.whole_file import replacing
take_signals()
@one_paragraph
def command():
    with replacing(Path("cutover.plan")) as file:
        file.write(b"half")
        for _ in range(int(sys.argv[2])):
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
        file.write(b"more")
command()
"""


# A terminal that closes says so twice.
@pytest.mark.parametrize(("name", "code", "times"), [("SIGTERM", 143, 1), ("SIGHUP", 129, 1), ("SIGHUP", 129, 2)])
def test_a_kill_and_a_terminal_that_closes_leave_no_half_made_file_behind(tmp_path, name, code, times):
    ended = process(sys.executable, "-c", HALF_MADE, name, times, cwd=tmp_path)
    assert (ended.returncode, list(tmp_path.iterdir())) == (code, []), ended.stderr
    assert ended.stderr.startswith(f"mm2-migrate: Interrupted by {name}. Run the same command again")


def test_what_nohup_ignores_stays_ignored(tmp_path):
    ignoring = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN){HALF_MADE}"
    ended = process(sys.executable, "-c", ignoring, "SIGHUP", 2, cwd=tmp_path)
    assert (ended.returncode, (tmp_path / "cutover.plan").read_bytes()) == (0, b"halfmore"), ended.stderr


UNDER_A_CALL = """
import signal, time
from migrate.cli.console import take_signals
take_signals()
# As in a call of librdkafka's, no handler runs meanwhile.
signal.signal(signal.SIGTERM, lambda *_: None)
print("ready", flush=True)
while True:
    time.sleep(60)
"""


def test_a_second_sigterm_ends_it_also_amid_a_call_that_no_handler_interrupts() -> None:
    with subprocess.Popen([sys.executable, "-c", UNDER_A_CALL], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1.0)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30.0) == 143
