"""Tokens that end every few seconds, a token endpoint that dies, certificates that end: it goes on, or says why not."""

import datetime
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from migrate.model import Side
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import STARTING, Commits, commits_on, delete_groups
from tests.integration.running import Running, applying, started
from tests.integration.securescene import (
    SECRETS,
    STORE_PASSWORD,
    USER,
    SecureScene,
    found_in,
    granted_scene,
)
from tests.lab.security import SecureCluster
from tests.lab.tokens import VALID_SECONDS, TokenServer
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

GROUPS = tuple(f"g{number:02}" for number in range(60))
PLAN = "cutover.plan"
SHORT_SECONDS = 6
TOKENS = "OAUTHBEARER"
COMMANDS = ("plan", "apply", "verify", "verify --records", "rollback")
IMPATIENT = ("--request-timeout", "8", "--group-timeout", "8")
GONE, GOOD = datetime.timedelta(hours=-1), datetime.timedelta(days=2)


@dataclass(frozen=True)
class Night:
    """The secure scene, and the commands of one test."""

    secure: SecureScene
    commands: CommandLine

    @property
    def tokens(self) -> TokenServer:
        return self.secure.tokens

    def plan_words(self, *options: str) -> tuple[str, ...]:
        chosen = ("--group", f".*{self.secure.scene.suffix}")
        return ("plan", *self.commands.clusters, "--settle", "1", "--out", PLAN, *chosen, *options)

    def plan(self) -> None:
        self.commands.run(*self.plan_words()).expect(0)

    @property
    def planned(self) -> Commits:
        found: Commits = {}
        for row in self.commands.document(PLAN)["rows"]:
            found.setdefault(row["group"], {})[row["target_topic"], row["partition"]] = row["target_offset"]
        assert len(found) == len(GROUPS)
        return found

    def held(self) -> Commits:
        """What is committed on the target, once its coordinator has loaded it after a restart."""

        def read() -> tuple[Commits] | None:
            try:
                return (commits_on(self.secure.target.bootstrap, self.secure.scene.commits),)
            except KafkaException as error:
                if error.args[0].code() not in STARTING:
                    raise
                return None

        return wait_until(read, 60, "the target's coordinator to load its groups")[0]

    @contextmanager
    def applying(self, *options: str) -> Iterator[Running]:
        """An apply that stands still: it has written some groups, and not all."""
        with applying(self.commands, PLAN, *options) as running:
            running.stop()
            assert not running.has_ended, "it was through before"
            yield running

    def outlast_tokens(self, cluster: SecureCluster, running: Running) -> None:
        """Let a command wait for a broker that stands still until no token is good any more."""
        broker = cluster.brokers[0].process
        broker.pause()
        running.go_on()
        try:
            ends = self.tokens.last_ends
            wait_until(lambda: time.time() > ends + 1, 60, "the last token to end")
        finally:
            broker.resume()

    def paragraph(self, ran: Ran) -> str:
        """What is said on stderr in the end, on one line."""
        told = " ".join(ran.complaint().split())
        assert len(told) < 900 and "Traceback" not in ran.stdout, str(ran)
        assert not found_in(SECRETS, text=ran.stdout + ran.stderr)
        return told

    def finish_and_undo(self) -> None:
        """All is well again: the same command finishes, verify agrees, and rollback brings all back."""
        self.commands.execute(PLAN).expect(0)
        assert self.held() == self.planned
        self.commands.verify(PLAN, "--records").expect(0)
        self.commands.undo(PLAN).expect(0)
        assert self.held() == {}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureScene]:
    with granted_scene(tmp_path_factory, GROUPS, COMMANDS) as scene:
        yield scene


@pytest.fixture
def by_token(secure: SecureScene, tmp_path: Path) -> Iterator[Night]:
    """Tokens live for a few seconds from here on."""
    commands = secure.sasl(tmp_path, TOKENS)
    # With the first token brokers load what checks one: that may take as long as a short one lives.
    commands.run("doctor", *commands.clusters)
    secure.tokens.valid_seconds = SHORT_SECONDS
    yield Night(secure, commands)
    secure.tokens.live()
    secure.tokens.valid_seconds = VALID_SECONDS
    delete_groups(secure.target.bootstrap, secure.scene.commits)


@pytest.fixture
def by_command(by_token: Night, tmp_path: Path) -> Night:
    """The same tokens, printed by a command."""
    return Night(by_token.secure, by_token.secure.by_token_command(tmp_path))


@pytest.mark.parametrize("how", ["by_token", "by_command"])
def test_tokens_that_live_for_seconds_are_renewed_all_through_a_cutover(
    how: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    by_token: Night = request.getfixturevalue(how)
    tokens, before, begun = by_token.tokens, by_token.tokens.handed_out, time.time()
    by_token.plan()
    assert tokens.handed_out - before > 2 and tokens.last_ends > begun + 2 * SHORT_SECONDS, "no token was renewed"
    rows = by_token.commands.document(PLAN)["rows"]
    assert len(rows) == 2 * len(GROUPS) and {row["grade"] for row in rows} == {"exact"}
    with by_token.applying() as running:
        by_token.outlast_tokens(by_token.secure.target, running)
        running.result().expect(0)
    assert by_token.held() == by_token.planned
    by_token.finish_and_undo()
    if how == "by_command":
        printed = (by_token.secure.secrets / "printed").read_text().split()
        assert len(printed) > 2 and not found_in(printed, tmp_path)


def test_a_token_endpoint_that_dies_amid_a_plan_leaves_no_plan_and_a_clear_end(by_token: Night) -> None:
    with started(by_token.commands, *by_token.plan_words(*IMPATIENT[:2])) as running:
        running.wait_for("reading commits of")
        by_token.tokens.die()
        by_token.outlast_tokens(by_token.secure.source, running)
        ran = running.result().expect(1)
    told = by_token.paragraph(ran)
    assert ran.stdout == "" and not (by_token.commands.folder / PLAN).exists(), str(ran)
    assert "token" in told.lower() or "authentication" in told.lower(), told
    # Who starts without the endpoint is told about it, too.
    ran = by_token.commands.run(*by_token.plan_words(*IMPATIENT[:2])).expect(1)
    assert "authentication failed: Failed to acquire SASL OAUTHBEARER token: " in by_token.paragraph(ran), str(ran)
    by_token.tokens.live()
    by_token.plan()


def test_a_token_endpoint_that_dies_amid_an_apply_leaves_what_the_same_command_finishes(by_token: Night) -> None:
    by_token.plan()
    with by_token.applying(*IMPATIENT) as running:
        by_token.tokens.die()
        by_token.outlast_tokens(by_token.secure.target, running)
        ran = running.result().expect(4)
    assert "Traceback" not in ran.stdout, str(ran)
    assert not found_in(SECRETS, text=ran.stdout + ran.stderr)
    held = by_token.held()
    assert held and all(by_token.planned[group] == places for group, places in held.items())
    assert len(held) < len(GROUPS), "it was through before"
    text = " ".join((ran.stdout + ran.stderr).split())
    assert re.match(r"PARTLY APPLIED: .*\d+ unknown", ran.stdout), str(ran)
    assert "authentication failed: Failed to acquire SASL OAUTHBEARER token: " in text, str(ran)
    by_token.tokens.live()
    by_token.finish_and_undo()


# --- certificates -----------------------------------------------------------------------------------------


@pytest.fixture
def by_certificate(secure: SecureScene, tmp_path: Path) -> Iterator[Night]:
    store, kept = secure.secrets / "client.pem", (secure.secrets / "client.pem").read_text()
    yield Night(secure, secure.tls(tmp_path))
    store.write_text(kept)
    delete_groups(secure.target.bootstrap, secure.scene.commits)


@contextmanager
def ended(cluster: SecureCluster) -> Iterator[None]:
    """The broker's certificate has ended, and it was restarted since: so every client must look at it."""
    cluster.restart_with(GONE)
    try:
        yield
    finally:
        cluster.restart_with(GOOD)


def test_a_brokers_certificate_that_ends_between_plan_and_apply_is_named(by_certificate: Night) -> None:
    secure = by_certificate.secure
    by_certificate.plan()
    for side in (Side.TARGET, Side.SOURCE):
        with ended(secure.cluster(side)):
            cluster = f"{side} {'A' if side is Side.SOURCE else 'B'} ("
            applied = by_certificate.commands.execute(PLAN, "--request-timeout", "8")
            planned = by_certificate.commands.run(*by_certificate.plan_words("--request-timeout", "8"))
            told = [by_certificate.paragraph(planned.expect(1))]
            if side is Side.TARGET:
                told.append(by_certificate.paragraph(applied.expect(1)))
            else:
                # A source that cannot be reached is one more reason to refuse, among others on the target.
                refused = " ".join(applied.expect(3).stdout.split())
                assert cluster in refused and "certificate verify failed" in refused, refused
            for text in told:
                assert cluster in text and "whether they have expired" in text, text
            assert by_certificate.held() == {}
    by_certificate.finish_and_undo()


def test_a_clients_certificate_that_ends_between_plan_and_apply_is_named(by_certificate: Night) -> None:
    secure = by_certificate.secure
    by_certificate.plan()
    assert secure.lab.authority is not None
    signed = secure.lab.authority.sign(USER, GONE)
    (secure.secrets / "client.pem").write_text(signed.key_pem() + signed.chain_pem())
    told = by_certificate.paragraph(by_certificate.commands.execute(PLAN, "--request-timeout", "8").expect(1))
    assert "target B (" in told and "certificate" in told, told
    assert STORE_PASSWORD not in told and by_certificate.held() == {}


def test_a_brokers_certificate_that_ends_amid_an_apply_leaves_what_the_same_command_finishes(
    by_certificate: Night,
) -> None:
    by_certificate.plan()
    target = by_certificate.secure.target
    with by_certificate.applying(*IMPATIENT) as running, ended(target):
        running.go_on()
        ran = running.result().expect(4)
    assert "Traceback" not in ran.stdout, str(ran)
    text = " ".join((ran.stdout + ran.stderr).split())
    assert re.match(r"PARTLY APPLIED: .*\d+ unknown", ran.stdout), str(ran)
    assert "certificate verify failed" in text, str(ran)
    held = by_certificate.held()
    assert held and all(by_certificate.planned[group] == places for group, places in held.items())
    by_certificate.finish_and_undo()
