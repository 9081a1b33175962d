"""Two clients behind one port: only what the usual one cannot do exactly goes to the other."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from migrate.apply.exact_admin import MISSING, UNUSABLE, ExactAdmin, groups_with_metadata
from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.model import UNREAD_METADATA, Commit, Commits, Decision, Failure, TopicPartition
from migrate.ports import Outcomes
from migrate.row_table import PlanRows
from tests.fakes import FakeCluster
from tests.unit.plans import row

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
NOT_HERE = Failure("UNSUPPORTED_BY_CLIENT", "not by this client")


@dataclass
class FakeExact:
    """The exact client to the same cluster; `trouble` is raised by every call."""

    cluster: FakeCluster
    trouble: MigrateError | None = None
    calls: list[str] = field(default_factory=list)

    def _called(self, call: str) -> None:
        self.calls.append(call)
        if self.trouble:
            raise self.trouble

    def prove(self) -> None:
        self._called("prove")

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        self._called(f"commits {','.join(groups)}")
        return self.cluster.commits(groups, require_stable)

    def alter(self, wanted: Mapping[str, Commits]) -> Outcomes:
        self._called(f"alter {','.join(wanted)}")
        return self.cluster.alter(wanted)

    def delete_offsets(self, wanted: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        self._called(f"delete {','.join(wanted)}")
        return self.cluster.delete_offsets(wanted)


def pair(trouble: MigrateError | None = None) -> tuple[ExactAdmin, FakeCluster, FakeExact]:
    usual = FakeCluster(lacking=NOT_HERE)
    exact = FakeExact(FakeCluster(offsets=usual.offsets, states=usual.states), trouble)
    return ExactAdmin(usual, exact, {"streams"}), usual, exact


def test_nothing_that_the_usual_client_can_do_makes_the_other() -> None:
    admin, usual, exact = pair(EnvironmentLacks("Java was not found.", "Install it."))
    assert admin.alter({"plain": {P0: Commit(7)}}) == {"plain": {P0: None}}
    assert admin.renewed().commits(["plain"]) == {"plain": {P0: Commit(7)}}
    assert admin.delete_groups(["plain"]) == {"plain": None}
    assert not exact.calls and usual.clients == 2


def test_metadata_is_written_and_read_by_the_exact_client_and_the_rest_by_the_usual_one() -> None:
    admin, usual, exact = pair()
    wanted = {"streams": {P0: Commit(7, "t\x00"), P1: Commit(8)}, "plain": {P0: Commit(9)}}
    assert admin.alter(wanted) == {group: dict.fromkeys(commits) for group, commits in wanted.items()}
    assert admin.commits(["streams", "plain"]) == wanted
    assert exact.calls == ["alter streams", "commits streams"]
    assert usual.calls["alter"] == usual.calls["commits"] == 1


def test_of_metadata_that_the_usual_client_reads_only_that_there_is_some_is_told() -> None:
    admin, usual, exact = pair()
    usual.commit("plain", P0.topic, P0.partition, 7, "m with bytes of other memory")
    usual.commit("plain", P1.topic, P1.partition, 8)
    assert admin.commits(["plain"]) == {"plain": {P0: Commit(7, UNREAD_METADATA), P1: Commit(8)}}
    assert not exact.calls


def test_single_offsets_are_removed_by_the_exact_client() -> None:
    admin, usual, exact = pair()
    usual.commit("plain", "A.orders", 0, 1)
    usual.commit("plain", "A.orders", 1, 2)
    assert admin.delete_offsets({"plain": [P0]}) == {"plain": {P0: None}}
    assert usual.held("plain") == {("A.orders", 1): 2} and exact.calls == ["delete plain"]


def test_without_java_its_groups_fail_by_name_and_the_others_go_on() -> None:
    admin, _, _ = pair(EnvironmentLacks("Java was not found.", "Install it."))
    wanted = {"streams": {P0: Commit(7, "t")}, "plain": {P0: Commit(9)}}
    written = admin.alter(wanted)
    assert written["plain"] == {P0: None}
    failure = written["streams"][P0]
    assert failure is not None and failure.code == MISSING and not failure.outcome_unknown
    assert failure.message == "Java was not found. Install it"
    assert admin.commits(["streams", "plain"]) == {"streams": failure, "plain": {P0: Commit(9)}}
    assert admin.delete_offsets({"g": [P1]}) == {"g": {P1: failure}}
    assert admin.missing_capability() == failure


def test_an_exact_client_that_is_not_let_in_is_lacking_too() -> None:
    admin, _, exact = pair(ClusterError("B cannot be used by Kafka's Java client.", "Check its settings."))
    lack = admin.missing_capability()
    assert lack is not None and lack.code == UNUSABLE
    exact.trouble = None
    assert admin.missing_capability() is None


def test_the_groups_to_read_exactly_are_those_to_write_or_keep_that_carry_metadata_anywhere() -> None:
    rows = [
        row("carries", target_metadata="m"), row("restores", target_prior_metadata="m"), row("plain"),
        row("mixed", source_metadata="m", decision=Decision.KEEP), row("mixed", partition=1),
        row("kept", source_metadata="m", decision=Decision.KEEP), row("blocked", source_metadata="m",
        decision=Decision.BLOCK), row("removed", offset=None, decision=Decision.REMOVE, target_prior_metadata="m"),
    ]  # fmt: skip
    assert groups_with_metadata(PlanRows.of(rows)) == {"carries", "restores", "mixed", "kept", "removed"}
