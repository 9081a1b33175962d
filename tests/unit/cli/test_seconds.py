"""Options in seconds: whatever is typed, it is a span of time that ends."""

import click
import pytest
from click.testing import CliRunner

from migrate.cli.main import cli
from migrate.cli.options import MOST_SECONDS, Seconds
from tests.unit.commands import run


def commands(of=cli):
    """Every command, by itself."""
    for each in of.commands.values():
        yield from commands(each) if isinstance(each, click.Group) else (each,)


def spans():
    return [
        pytest.param(command, option, id=f"{command.name} {option.opts[0]}")
        for command in commands()
        for option in command.params
        if isinstance(option.type, click.types.FloatParamType) or option.metavar == "SECONDS"
    ]


@pytest.mark.parametrize(("command", "option"), spans())
def test_no_command_waits_for_ever_or_for_what_is_no_time(command, option):
    for given in ("nan", "-inf", "1e400", "2000001", "-1", "soon"):
        told = CliRunner().invoke(command, [option.opts[0], given])
        assert told.exit_code == 2 and f"Invalid value for '{option.opts[0]}'" in told.output, told.output


def test_spans_that_end_are_taken_up_to_the_longest():
    spans_of = Seconds(min=0.1)
    for given in ("0.1", "15", str(MOST_SECONDS)):
        assert spans_of.convert(given, None, None) == float(given)


def test_what_is_refused_says_what_is_possible_and_so_does_the_help():
    told, help_text = (
        " ".join(run("plan", *words).output.split()) for words in (["--request-timeout", "nan"], ["--help"])
    )
    assert "is not a number of seconds up to 2,000,000" in told and "x>=0.1" in help_text
