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
GOOD = {P0: Commit(10)}
PASSING = Failure("_TIMED_OUT", "no answer", retriable=True)


class Reads:
    """A cluster whose next readings are answered by `answers`: a failure for every group, or None for the commits."""

    def __init__(self, cluster: FakeCluster, answers: list[Failure | None]):
        self.cluster, self.answers, self.clients = cluster, answers, 0

    def renewed(self) -> "Reads":
        self.clients += 1
        return self

    def commits(self, groups: Collection[str]) -> Mapping[str, Commits | Failure]:
        answer = self.answers.pop(0)
        return self.cluster.commits(groups) if answer is None else dict.fromkeys(groups, answer)


def test_a_reading_that_failed_in_passing_is_made_again_until_the_time_is_up():
    target, _ = clusters(plan(row("g", target_prior=10)))
    answers: list[Failure | None] = [PASSING, None]
    reads = Reads(target, answers)
    commits = read_commits(reads, ["g"], FakeClock(), 60.0)
    assert commits["g"] == {P0: Commit(10)} and reads.clients == 2
    denied = Failure("GROUP_AUTHORIZATION_FAILED", "no")
    answers.append(denied)
    assert read_commits(reads, ["g"], FakeClock(), 60.0) == {"g": denied}, "that one does not pass"


def test_a_client_that_breaks_at_the_last_reading_is_an_answer_and_no_error():
    target, _ = clusters(plan(row("g")))
    (failure,) = read_commits(Reads(target, []), ["g"], FakeClock(), 0.0).values()
    assert isinstance(failure, Failure) and failure.code == "NO_ANSWER" and "IndexError" in failure.message


def test_a_group_that_the_answer_leaves_out_is_told_as_unread():
    target, _ = clusters(plan(row("g", target_prior=10)))

    class LeavesOut(Reads):
        def commits(self, groups: Collection[str]) -> Mapping[str, Commits | Failure]:
            return super().commits(["g"])

    read = read_commits(LeavesOut(target, [None]), ["g", "h"], FakeClock(), 60.0)
    assert read == {"g": {P0: Commit(10)}, "h": NO_ANSWER}


@pytest.mark.parametrize(
    ("answers", "seconds", "told"),
    [
        ([None, PASSING, None, None], 60.0, (GOOD, GOOD, GOOD)),
        ([None, PASSING, None], 0.0, (GOOD, PASSING.code, GOOD)),
        ([None, None], 0.0, (GOOD, GOOD, "NO_ANSWER")),
        ([None, PASSING], 0.0, (GOOD, PASSING.code, "NO_ANSWER")),
    ],
    ids=["what passed", "what did not pass in time", "a client that breaks keeps what was read", "and why it was not"],
)
def test_of_groups_that_are_read_one_by_one_each_is_told(monkeypatch, answers, seconds, told):
    monkeypatch.setattr(read_back, "READ_CHUNK", 1)
    target, _ = clusters(plan(*(row(group, target_prior=10) for group in "abc")))
    read = read_commits(Reads(target, list(answers)), ["a", "b", "c"], FakeClock(), seconds)
    shown = {g: r.code if isinstance(r, Failure) else r for g, r in read.items()}
    assert shown == dict(zip("abc", told, strict=True))
