"""The command line as tests type it, in this process, and the options of two clusters that nobody runs."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from migrate.cli import apply, flows, rollback, verify
from migrate.cli.apply import ApplyOptions, WritingOptions
from migrate.cli.console import Terminal
from migrate.cli.main import cli
from migrate.cli.options import PlanRowOptions, ReachedClusters
from migrate.cli.rollback import RollbackOptions
from migrate.cli.verify import VerifyOptions
from migrate.errors import ClusterError
from migrate.mm2.flow import Flow
from tests.fakes import NoProgress


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, list(words), env=environment or None)


def clusters(tmp_path: Path) -> list[str]:
    (tmp_path / "a.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    (tmp_path / "b.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    return [
        "--source-config", str(tmp_path / "a.properties"), "--target-config", str(tmp_path / "b.properties"),
        "--source", "A", "--target", "B",
    ]  # fmt: skip


def run_in_flow(tmp_path: Path, patch: pytest.MonkeyPatch, *words: str) -> tuple[Result, list[Any]]:
    """Type a command in a folder whose flows.yaml has the flow `eu`; return also the options that were to be resolved.

    No cluster is asked: the command ends with 1 there.
    """
    asked = []

    def resolve(options: Any) -> None:
        asked.append(options)
        raise ClusterError("No cluster is asked here.")

    patch.setattr(flows, "resolve_flow", resolve)
    patch.chdir(tmp_path)
    (tmp_path / "flows.yaml").write_text("flows: [{name: eu, mm2_config: mm2.properties, source: A, target: B}]")
    return run(*words, "--flow", "eu"), asked


def plug_in(patch: pytest.MonkeyPatch, **fakes: Any) -> None:
    """Put fakes where `apply`, `rollback` and `verify` take what has that name."""
    for name, fake in fakes.items():
        for module in (apply, rollback, verify):
            if hasattr(module, name):
                patch.setattr(module, name, fake)


RUN = {
    "apply": (apply.run_apply, ApplyOptions), "rollback": (rollback.run_rollback, RollbackOptions),
    "verify": (verify.run_verify, VerifyOptions),
}  # fmt: skip


def run_on_plan(command: str, path: Path, flow: Flow, **choices: Any) -> tuple[list[str], int]:
    """Run one of the three on a plan file, with clusters that are plugged in; return its lines and its exit code.

    `choices` are by the names of the fields of the options and of their parts; one that the command has not is nothing
    to it.
    """
    parts = {"writing": WritingOptions, "rows": PlanRowOptions}
    choices = {"concurrency": 1, "group_timeout": 0.0, **choices}
    run, of = RUN[command]

    def chosen(kind: type) -> dict[str, Any]:
        return {each.name: choices[each.name] for each in fields(kind) if each.name in choices}

    given = {each.name: parts[each.name](**chosen(parts[each.name])) for each in fields(of) if each.name in parts}
    options = of(plan=path, clusters=ReachedClusters(request_timeout=1.0), **given, **chosen(of))
    return run(options, flow, NoProgress(), Terminal(columns=lambda: 100))
