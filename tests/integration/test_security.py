"""TLS, logins and ACLs: a whole cutover with the rights that docs/rights.md lists, and with one too few."""

import json
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from migrate.checks.rights import COMMANDS
from migrate.model import Side
from tests.integration.cli import CommandLine
from tests.integration.clusters import commits_on
from tests.integration.repeated import again_and_again
from tests.integration.securescene import (
    SECRETS,
    USER,
    SecureScene,
    command_lines,
    found_in,
    granted_scene,
    said,
)

LONG = pytest.mark.long

PLAN = "cutover.plan"
GROUPS = ("scram", "tls", "oauth", "rights")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureScene]:
    with granted_scene(tmp_path_factory, GROUPS, ()) as scene:
        yield scene


@contextmanager
def no_secret_in_any_process() -> Iterator[None]:
    """Look at the command lines of all processes all the time."""
    seen: list[bytes] = []

    def look() -> None:
        seen.extend(line for line in command_lines() if any(secret.encode() in line for secret in SECRETS[:-1]))

    with again_and_again(look, 0.2):
        yield
    assert not seen, f"{len(seen)} command lines with a secret"


@pytest.mark.parametrize(
    ("name", "login"),
    [
        pytest.param("scram", SecureScene.sasl, id="SCRAM over TLS"),
        pytest.param("tls", SecureScene.tls, id="client certificates", marks=LONG),
        pytest.param("oauth", partial(SecureScene.sasl, mechanism="OAUTHBEARER"), id="tokens over TLS", marks=LONG),
    ],
)
def test_a_whole_cutover_needs_just_the_listed_rights_and_tells_no_secret(
    secure: SecureScene, tmp_path: Path, name: str, login: Callable[[SecureScene, Path], CommandLine]
) -> None:
    work, events = tmp_path / "work", tmp_path / "events"
    work.mkdir()
    events.mkdir()
    commands, group, ran = login(secure, work), secure.scene.group(name), []

    def on_target() -> dict[tuple[str, int], int]:
        return commits_on(secure.target.bootstrap, [group]).get(group, {})

    def allowed(command: str, *words: str) -> None:
        secure.allow(command, group)
        name, *more = command.split()
        ran.append(commands.run(name, *words, *commands.clusters, *more).expect(0))

    with no_secret_in_any_process():
        allowed("plan", "--out", PLAN, "--settle", "1", "--group", group, *logged(events))
        ran.append(commands.run("show", PLAN, "--format", "json").expect(0))
        rows = json.loads(ran[-1].stdout)["rows"]
        allowed("apply", PLAN, *commands.approved(PLAN))
        assert on_target() == {(row["target_topic"], row["partition"]): row["target_offset"] for row in rows}
        allowed("verify", PLAN)
        allowed("verify --records", PLAN)
        allowed("rollback", PLAN, *commands.approved(PLAN))
    assert on_target() == {}
    assert {row["grade"] for row in rows} == {"exact"}
    # Spark's event log has its whole configuration and the plan of every query.
    assert any("SparkListenerEnvironmentUpdate" in path.read_text() for path in events.rglob("*") if path.is_file())
    assert not found_in(SECRETS, work, events, text=said(*ran))
    written = [path for path in work.iterdir() if path.is_file() and path.suffix != ".properties"]
    assert len(written) == 2, written
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}


def logged(folder: Path) -> tuple[str, ...]:
    return ("--spark-conf", "spark.eventLog.enabled=true", "--spark-conf", f"spark.eventLog.dir=file://{folder}",
            "--spark-conf", "spark.eventLog.compress=false")  # fmt: skip


@pytest.mark.long
def test_the_doctor_finds_all_rights_and_names_each_that_is_missing(secure: SecureScene, tmp_path: Path) -> None:
    group = secure.scene.group("rights")
    commands = secure.sasl(tmp_path, "PLAIN")
    for side in Side:
        secure.cluster(side).grant(USER, {g for name in COMMANDS for g in secure.grants(name, side, [group])})
    reading = ("--commits-from", "consumer-offsets")
    well = commands.run("doctor", *commands.clusters, "--group", group, *reading).expect(0)
    assert "rights for rollback on target B" in well.stdout
    assert "rights for plan --commits-from consumer-offsets on source A: all there" in " ".join(well.stdout.split())
    # DESCRIBE only: every list is complete, and nothing else is allowed.
    for side in Side:
        wanted = {("DESCRIBE", kind, name) for _, kind, name in secure.grants("plan", side, [group])}
        secure.cluster(side).grant(USER, wanted)
    ill = commands.run("doctor", *commands.clusters, "--group", group, *reading).expect(1)
    text = " ".join(ill.stdout.replace("\n        ", " ").split())
    copy = secure.scene.copy(secure.pool)
    for line in (
        f"rights for plan on source A: missing: READ on topic {secure.pool} (to compare their records)",
        f"rights for apply on target B: missing: READ on group {group} (to commit for them); READ on topic {copy}",
        f"rights for rollback on target B: missing: READ on group {group}",
        "missing: READ on topic __consumer_offsets (to read commits there)",
    ):
        assert line in text, f"{line}\n{ill}"
    assert "rights for apply on source A: all there" in text
    assert not found_in(SECRETS, text=said(well, ill))


@pytest.mark.long
def test_commits_from_the_offsets_topic_take_two_rights_more_and_without_it_the_other_way_is_named(
    secure: SecureScene, tmp_path: Path
) -> None:
    group, reading = secure.scene.group("rights"), "plan --commits-from consumer-offsets"
    commands = secure.sasl(tmp_path)
    options = ("--group", group, *reading.split()[1:])
    secure.allow("plan", group)
    refused = commands.plan("none.plan", *options).expect(1).complaint()
    assert "__consumer_offsets" in refused and "--commits-from admin" in refused
    commands.plan("admin.plan", "--group", group).expect(0)
    more = secure.grants("plan", Side.SOURCE, [group]) | secure.grants(reading, Side.SOURCE, [group])
    # Under such a name Spark reads: it asks what the group has committed, which is nothing.
    reader = {("DESCRIBE", "GROUP", "mm2-migrate-*")}
    secure.source.grant(USER, more - reader)
    unnamed = commands.plan("none.plan", *options).expect(1).complaint()
    assert "DESCRIBE groups that begin with mm2-migrate-" in unnamed
    secure.source.grant(USER, more | reader)
    made = commands.plan("topic.plan", *options).expect(0)
    assert commands.document("topic.plan")["rows"] == commands.document("admin.plan")["rows"]
    assert not found_in(SECRETS, tmp_path, text=refused + said(made))


# One right too few: command, side, resource, what is taken away, what is left of it, which of them is named, and the
# exit code: 3 where it is refused, or planned with a block; 1 where it failed. Of what may not even be described
# brokers tell nothing: lists are shorter, and answers emptier.
LACKS = [
    ("plan", Side.SOURCE, "CLUSTER", "DESCRIBE", "", "DESCRIBE", 3),
    ("plan", Side.SOURCE, "TOPIC pool", "READ", "", "DESCRIBE", 3),
    ("plan", Side.SOURCE, "GROUP", "DESCRIBE", "", "DESCRIBE", 1),
    ("plan", Side.TARGET, "TOPIC copy", "READ", "", "DESCRIBE", 3),
    ("plan", Side.TARGET, "TOPIC A.checkpoints.internal", "READ", "", "READ", 3),
    ("plan", Side.TARGET, "TOPIC A.checkpoints.internal", "READ", "DESCRIBE", "READ", 1),
    ("plan", Side.SOURCE, "TOPIC mm2-offset-syncs.B.internal", "READ", "DESCRIBE", "READ", 1),
    ("plan", Side.TARGET, "GROUP", "DESCRIBE", "", "DESCRIBE", 1),
    ("apply", Side.SOURCE, "TOPIC pool", "DESCRIBE", "", "DESCRIBE", 3),
    ("apply", Side.SOURCE, "GROUP", "DESCRIBE", "", "DESCRIBE", 3),
    ("apply", Side.TARGET, "GROUP", "READ", "", "DESCRIBE", 3),
    ("apply", Side.TARGET, "TOPIC copy", "READ", "", "DESCRIBE", 3),
    ("apply", Side.TARGET, "TOPIC copy", "READ", "DESCRIBE", "READ", 1),
    ("apply", Side.TARGET, "GROUP", "READ", "DESCRIBE", "READ", 1),
    ("verify", Side.TARGET, "GROUP", "DESCRIBE", "", "DESCRIBE", 1),
    ("verify", Side.TARGET, "TOPIC copy", "DESCRIBE", "", "DESCRIBE", 1),
    ("verify --records", Side.SOURCE, "TOPIC pool", "READ", "", "DESCRIBE", 1),
    ("verify --records", Side.SOURCE, "TOPIC pool", "READ", "DESCRIBE", "READ", 1),
]


@pytest.fixture(scope="module")
def planned(secure: SecureScene, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A plan that nothing stands in the way of, in a folder of its own."""
    folder = tmp_path_factory.mktemp("planned")
    commands, group = replace(secure.tls(folder), warm=True), secure.scene.group("rights")
    secure.allow("plan", group)
    commands.plan(PLAN, "--group", group).expect(0)
    return commands


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "side", "resource", "operation", "left", "names", "code"), LACKS, ids=lambda v: str(v)
)
def test_a_missing_right_is_named_with_its_resource_and_side(
    secure: SecureScene, planned: CommandLine,
    command: str, side: Side, resource: str, operation: str, left: str, names: str, code: int,
) -> None:  # fmt: skip
    group = secure.scene.group("rights")
    kind, _, name = resource.partition(" ")
    name = {"pool": secure.pool, "copy": secure.scene.copy(secure.pool)}.get(name, name)
    name = {"GROUP": group, "CLUSTER": ""}.get(kind, name)
    secure.allow(command, group)
    granted = secure.grants(command, side, [group])
    assert (operation, kind, name) in granted
    few = granted - {(operation, kind, name)}
    secure.cluster(side).grant(USER, few | ({(left, kind, name)} if left else set()))
    before = commits_on(secure.target.bootstrap, [group])
    ran = {
        "plan": lambda: planned.plan("lacking.plan", "--group", group),
        "apply": lambda: planned.execute(PLAN),
        "verify": lambda: planned.verify(PLAN),
        "verify --records": lambda: planned.verify(PLAN, "--records"),
    }[command]()
    text = " ".join((ran.stdout + ran.stderr).split())
    ran.expect(code)
    for word in (names, name or "cluster"):
        assert word in text, f"{word} is not named\n{ran}"
    alias = "A" if side is Side.SOURCE else "B"
    cluster = rf"\b({side} {alias}|on {alias}|{alias} refused|{side} log|{side} group state|{side}'s log)\b"
    assert re.search(cluster, text), f"the {side} is not named\n{ran}"
    assert commits_on(secure.target.bootstrap, [group]) == before
    assert not found_in(SECRETS, planned.folder, text=text)


@pytest.mark.long
@pytest.mark.parametrize("side", list(Side))
def test_a_topic_that_may_not_be_read_makes_rows_less_than_exact_and_never_fails_the_plan(
    secure: SecureScene, tmp_path: Path, side: Side
) -> None:
    group = secure.scene.group("rights")
    commands = secure.sasl(tmp_path)
    topic = secure.pool if side is Side.SOURCE else secure.scene.copy(secure.pool)
    secure.allow("plan", group)
    few = secure.grants("plan", side, [group]) - {("READ", "TOPIC", topic)} | {("DESCRIBE", "TOPIC", topic)}
    secure.cluster(side).grant(USER, few)
    ran = commands.plan(PLAN, "--group", group)
    rows = commands.planned(ran, PLAN)["rows"]
    assert rows and not {row["grade"] for row in rows} & {"exact"}, str(ran)
    # A row that is blocked keeps its own sentence; the other one of the group then says that it is blocked with it.
    assert {row["why"] for row in rows} == {"not-readable"}, rows
    assert any("The records could not be read (TOPIC_AUTHORIZATION_FAILED)." in row["sentence"] for row in rows), rows


@pytest.mark.parametrize("command", ["plan", pytest.param("doctor", marks=LONG)])
def test_a_wrong_password_ends_soon_names_the_side_and_is_never_shown(
    secure: SecureScene, tmp_path: Path, command: str
) -> None:
    commands = secure.sasl(tmp_path, secret="wrong")
    ran = commands.run(command, *commands.clusters, "--request-timeout", "5").expect(1)
    text = ran.stdout + ran.stderr
    told = " ".join(text.split())
    assert f"target B ({secure.target.sasl_bootstrap})" in told and "authentication failed: " in told, str(ran)
    assert not (tmp_path / PLAN).exists()
    assert not found_in(SECRETS, tmp_path, text=text)
