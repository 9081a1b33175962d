"""What was written is read back by a fresh client: each group once, again what failed in passing, all of it told."""

from collections.abc import Collection, Mapping

import pytest

from migrate.apply import read_back
from migrate.apply.read_back import CommitAnswers, read_commits
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


def read_in_chunks(answers: list[Failure | None], timeout_seconds: float = 60.0) -> list[CommitAnswers]:
    """Read groups a, b and c one by one; return what was taken, in its order, without what had no group."""
    target, _ = clusters(plan(*(row(group, target_prior=10) for group in "abc")))
    taken: list[CommitAnswers] = []
    read = read_commits(Reads(target, answers), ["a", "b", "c"], FakeClock(), timeout_seconds, take=taken.append)  # type: ignore[arg-type]
    together = [group for part in taken for group in part]
    assert sorted(together) == ["a", "b", "c"], "each once"
    assert {group: answer for part in taken for group, answer in part.items()} == read
    return [part for part in taken if part]


def test_what_passes_is_taken_once_with_what_became_of_it(in_chunks_of_one: None) -> None:
    taken = read_in_chunks([None, PASSING, None, None])
    assert [list(part) for part in taken] == [["a"], ["c"], ["b"]]
    assert taken[-1] == {"b": {P0: Commit(10)}}


def test_what_has_not_passed_when_the_time_is_up_is_taken_as_it_is(in_chunks_of_one: None) -> None:
    taken = read_in_chunks([None, PASSING, None], timeout_seconds=0.0)
    assert taken[-1] == {"b": PASSING}


def test_a_client_that_breaks_in_the_middle_keeps_what_was_read_before(in_chunks_of_one: None) -> None:
    taken = read_in_chunks([None, None], timeout_seconds=0.0)
    assert [list(part) for part in taken[:2]] == [["a"], ["b"]]
    (lost,) = taken[-1].values()
    assert isinstance(lost, Failure) and lost.code == "NO_ANSWER"
