"""What was written is read back by a fresh client: each group once, again what failed in passing, all of it told."""

from collections.abc import Collection, Mapping

import pytest

from migrate.apply import read_back
from migrate.apply.read_back import read_commits
from migrate.model import Commit, Commits, Failure, TopicPartition
from migrate.survey.groups import NO_ANSWER
from tests.fakes import FakeClock, FakeCluster
from tests.unit.plans import clusters, plan, row

P0 = TopicPartition("A.orders", 0)
PASSING = Failure("_TIMED_OUT", "no answer", retriable=True)


class Reads:
    """A cluster whose next readings are answered by `answers`: a failure for every group, or None for the commits."""

    def __init__(self, cluster: FakeCluster, answers: list[Failure | None]) -> None:
        self.cluster, self.answers, self.clients = cluster, answers, 0

    def renewed(self) -> "Reads":
        self.clients += 1
        return self

    def commits(self, groups: Collection[str]) -> Mapping[str, Commits | Failure]:
        answer = self.answers.pop(0)
        return self.cluster.commits(groups) if answer is None else dict.fromkeys(groups, answer)


def test_a_reading_that_failed_in_passing_is_made_again_until_the_time_is_up() -> None:
    target, _ = clusters(plan(row("g", target_prior=10)))
    answers: list[Failure | None] = [Failure("_TIMED_OUT", "no answer", retriable=True), None]
    reads = Reads(target, answers)
    commits = read_commits(reads, ["g"], FakeClock(), 60.0)  # type: ignore[arg-type]
    assert commits["g"] == {P0: Commit(10)} and reads.clients == 2
    denied = Failure("GROUP_AUTHORIZATION_FAILED", "no")
    answers.append(denied)
    assert read_commits(reads, ["g"], FakeClock(), 60.0) == {"g": denied}, "that one does not pass"  # type: ignore[arg-type]


def test_a_client_that_breaks_at_the_last_reading_is_an_answer_and_no_error() -> None:
    target, _ = clusters(plan(row("g")))
    (failure,) = read_commits(Reads(target, []), ["g"], FakeClock(), 0.0).values()  # type: ignore[arg-type]
    assert isinstance(failure, Failure) and failure.code == "NO_ANSWER" and "IndexError" in failure.message


def test_a_group_that_the_answer_leaves_out_is_told_as_unread() -> None:
    target, _ = clusters(plan(row("g", target_prior=10)))

    class LeavesOut(Reads):
        def commits(self, groups: Collection[str]) -> Mapping[str, Commits | Failure]:
            return super().commits(["g"])

    read = read_commits(LeavesOut(target, [None]), ["g", "h"], FakeClock(), 60.0)  # type: ignore[arg-type]
    assert read == {"g": {P0: Commit(10)}, "h": NO_ANSWER}


@pytest.fixture
def in_chunks_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_back, "READ_CHUNK", 1)


def read_in_chunks(answers: list[Failure | None], timeout_seconds: float = 60.0) -> Mapping[str, Commits | Failure]:
    """Read groups a, b and c one by one."""
    target, _ = clusters(plan(*(row(group, target_prior=10) for group in "abc")))
    return read_commits(Reads(target, answers), ["a", "b", "c"], FakeClock(), timeout_seconds)  # type: ignore[arg-type]


def test_what_passes_is_told_as_what_became_of_it(in_chunks_of_one: None) -> None:
    assert read_in_chunks([None, PASSING, None, None]) == dict.fromkeys("abc", {P0: Commit(10)})


def test_what_has_not_passed_when_the_time_is_up_is_told_as_it_is(in_chunks_of_one: None) -> None:
    assert read_in_chunks([None, PASSING, None], timeout_seconds=0.0)["b"] == PASSING


def test_a_client_that_breaks_in_the_middle_keeps_what_was_read_before(in_chunks_of_one: None) -> None:
    read = read_in_chunks([None, None], timeout_seconds=0.0)
    assert read["a"] == read["b"] == {P0: Commit(10)}
    assert isinstance(read["c"], Failure) and read["c"].code == "NO_ANSWER"


def test_why_a_group_could_not_be_read_is_kept_when_the_client_breaks_later(in_chunks_of_one: None) -> None:
    assert read_in_chunks([None, PASSING], timeout_seconds=0.0)["b"] == PASSING
