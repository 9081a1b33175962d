"""Random surveys: all that decides rows, usual and not, without a cluster that it was read from."""

import random
from typing import Any

from migrate.commit_table import CommitTable, GroupCommits
from migrate.match.equality import Equality
from migrate.match.place_table import PlaceTable
from migrate.match.protocol import (
    Comparison,
    FetchEstimate,
    Matched,
    PartitionAnswer,
    Tail,
    Unmatched,
    Why,
    WhyUnmatched,
)
from migrate.mm2.chain import Window
from migrate.mm2.checkpoint_table import CheckpointTable, WrittenCheckpoints
from migrate.mm2.config_file import client_flow
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointReading, SyncReading
from migrate.model import (
    ClusterFacts,
    Commit,
    Failure,
    GroupPartition,
    GroupState,
    LogRange,
    OffsetSync,
    Side,
    TopicPartition,
)
from migrate.survey.commits import with_uncommitted
from migrate.survey.commits_source import FROM_CHECKPOINTS, FROM_COORDINATORS
from migrate.survey.filters import Filters
from migrate.survey.group_facts import GroupFacts
from migrate.survey.policies import AS_OF_GONE, AS_OF_NONE, Policies, Rewind, Uncommitted, Untranslatable
from migrate.survey.renamed import TargetNames
from migrate.survey.survey import (
    ClusterSurvey,
    Logs,
    Mm2Records,
    Mm2Topic,
    PlanRequest,
    SelectedCommits,
    Survey,
    Watermarks,
    copy_of,
    window_questions,
)
from migrate.survey.topic_commits import with_missing

PROPERTIES = {"bootstrap.servers": "x:1"}
FLOW = client_flow(PROPERTIES, PROPERTIES, "A", "B")
TOPICS = ("orders", "orders-1", "名前", "__consumer_offsets")
LENGTH = 1_000
TAKEN_AT_MS = 1_785_553_200_000  # 2026-08-01 03:00 UTC
RARE = 0.03
# What a plan can be: each takes other ways through the rules.
KINDS = ("mixed", "failback", "source-down", "as-of", "uncommitted", "no-match")


def random_survey(seed: int, kind: str) -> tuple[PlanRequest, Survey]:
    """Return a request and what was read for it."""
    return _Maker(random.Random(f"{kind}-{seed}"), kind).made()


class _Maker:
    def __init__(self, rnd: random.Random, kind: str) -> None:
        self.rnd, self.kind = rnd, kind
        self.topics = [f"A.{topic}" for topic in TOPICS] if kind == "failback" else list(TOPICS)
        self.places = [TopicPartition(topic, n) for topic in self.topics for n in range(6)]
        self.flow: Flow = FLOW.reversed() if kind == "failback" else FLOW

    def rarely(self) -> bool:
        return self.rnd.random() < RARE

    def made(self) -> tuple[PlanRequest, Survey]:
        rnd, flow, down = self.rnd, self.flow, self.kind == "source-down"
        policies = Policies(
            untranslatable=rnd.choice([Untranslatable.BLOCK, Untranslatable.SKIP, Untranslatable.EARLIEST]),
            rewind=rnd.choice(list(Rewind)),
            uncommitted=Uncommitted.EARLIEST if self.kind == "uncommitted" else Uncommitted.IGNORE,
        )
        reads = FROM_CHECKPOINTS if down else FROM_COORDINATORS
        request = PlanRequest(flow, Filters(), policies, 0.0, {}, commits=reads)
        logs = Logs(
            {} if down else {place: self._log() for place in self.places if not self.rarely()},
            {copy_of(flow, place): self._log() for place in self.places if not self.rarely()},
        )
        source_topics = dict.fromkeys(self.topics, 6)
        copied = [topic for topic in self.topics if rnd.random() < 0.9]
        target_topics = {flow.policy.target_topic(topic): 4 if self.rarely() else 6 for topic in copied}
        commits = {f"group-{n}": self._commits() for n in range(12)}
        selected = SelectedCommits(
            GroupCommits(commits), commits, {}, frozenset(), frozenset(commits),
            **(self._as_of(commits) if self.kind == "as-of" else {}),
        )  # fmt: skip
        keys = with_uncommitted(selected.commits, source_topics, target_topics, request)
        keys = with_missing(keys, selected.missing)
        answers = {} if self.kind in ("no-match", "source-down") else self._answers(keys, logs)
        renamed = {group: f"{group}-eu" for group in commits if rnd.random() < 0.3}
        states = {group: GroupState("Empty") for group in sorted(selected.groups)}
        survey = Survey(
            request=request,
            taken_at_ms=TAKEN_AT_MS,
            source=ClusterSurvey(ClusterFacts("id-a", 1, True), source_topics, frozenset(commits), states=states),
            target=ClusterSurvey(ClusterFacts("id-b", 1, True), target_topics, frozenset(commits), states=states),
            selected=selected,
            groups=tuple(states),
            unstable=frozenset(),
            priors={group: self._priors(table) for group, table in commits.items() if rnd.random() < 0.5},
            keys=keys,
            logs=logs,
            watermarks=Watermarks({}, {}),
            growth={},
            mm2=self._mm2(commits, keys, logs, answers),
            comparison=self._comparison(answers) if answers else None,
            group_facts=GroupFacts(),
            connect_topics=(),
            timings={},
            target_names=TargetNames(renamed),
        )
        return request, survey

    def _log(self) -> LogRange | Failure:
        if self.rarely():
            return Failure("LEADER_NOT_AVAILABLE", "no leader")
        return LogRange(self.rnd.choice([0, 0, 100]), LENGTH - self.rnd.choice([0, 0, 200]))

    def _commits(self) -> CommitTable:
        rnd, carries = self.rnd, self.rarely()
        places = sorted(rnd.sample(self.places, rnd.randrange(1, 9)))
        # A few offsets, so that groups meet at some of them; some are beyond their log.
        offsets = [rnd.choice([120, 500, rnd.randrange(110, LENGTH + 50)]) for _ in places]
        return CommitTable(places, offsets, ["streams" if carries and rnd.random() < 0.5 else "" for _ in places])

    def _priors(self, commits: CommitTable) -> dict[TopicPartition, Commit]:
        rnd = self.rnd
        return {
            copy_of(self.flow, place): Commit(rnd.choice([offset, 50, 100, LENGTH]), "old" if self.rarely() else "")
            for place, offset in zip(commits.partitions, commits.offsets, strict=True)
            if rnd.random() < 0.9
        }

    def _as_of(self, commits: dict[str, CommitTable]) -> dict[str, Any]:
        live = {group: {place: Commit(700) for place in table.partitions[1:]} for group, table in commits.items()}
        missing = {
            GroupPartition(group, *place): self.rnd.choice([AS_OF_GONE, AS_OF_NONE])
            for group, table in commits.items()
            for place in self.rnd.sample(self.places, 2)
            if place not in table
        }
        return {"now": live, "missing": missing}

    def _answers(self, keys: Any, logs: Logs) -> dict[TopicPartition, PartitionAnswer]:
        committed: dict[TopicPartition, set[int]] = {}
        for key, commit in keys.items():
            if commit is not None and not self.rarely():
                committed.setdefault(key.source_partition, set()).add(commit.offset)
        answers = {}
        for place, offsets in committed.items():
            log = logs.target.get(copy_of(self.flow, place))
            end = log.end if isinstance(log, LogRange) else LENGTH
            places = {offset: self._place(offset, end) for offset in offsets}
            answers[place] = PartitionAnswer(PlaceTable(places), Tail(0), 10, 10)
        return answers

    def _place(self, offset: int, end: int) -> Matched | Unmatched:
        rnd = self.rnd
        if self.rarely():
            reason = rnd.choice([WhyUnmatched.MATCH_LIMIT, WhyUnmatched.NOT_READABLE])
            return Unmatched(reason, rnd.choice([None, 50]), rnd.choice([None, (90, 95)]), error_code="X")
        target = LENGTH * 2 if self.rarely() else min(end, rnd.choice([offset, offset + 5, end]))
        lower = rnd.choice([(offset, target), (offset - 10, target - 10), None])
        return Matched(target, rnd.choice(list(Why)), rnd.choice([0, 3]), rnd.choice([0, 1]), lower, (990, 995))

    def _comparison(self, answers: dict[TopicPartition, PartitionAnswer]) -> Comparison:
        equalities = {topic: self.rnd.choice([*Equality, None]) for topic in self.topics}
        return Comparison(answers, equalities, FetchEstimate(0, 0, 0, 0, 0, 0), 0, 0)

    def _mm2(self, commits: dict[str, CommitTable], keys: Any, logs: Logs, answers: object) -> Mm2Records:
        rnd, asks, windows = self.rnd, window_questions(self.flow, logs), {}
        for key, commit in keys.items():
            question = asks(key, commit)
            if question is not None and rnd.random() < (0.1 if answers else 0.9):
                at = commit.offset
                lower, upper = OffsetSync(1, at - 50, at - 40), OffsetSync(2, at + 50, at + 60)
                windows[question] = Window(rnd.choice([None, lower, lower]), rnd.choice([None, upper]))
        written = [
            WrittenCheckpoints(group, copy, rnd.sample(range(6), 5), range(5), [0] * 5, *offsets, [1] * 5)
            for group, table in commits.items()
            for offsets in [[rnd.choices(range(LENGTH), k=5) for _ in "st"]]
            for copy in {copy_of(self.flow, place).topic for place in table.partitions}
            if rnd.random() < 0.8
        ]
        syncs = SyncReading(windows, {"offset-sync": 7})
        topics = [
            Mm2Topic(side, name, True, LogRange(0, 9))
            for side, name in ((Side.TARGET, "A.checkpoints.internal"), (Side.SOURCE, "mm2-offset-syncs.B.internal"))
        ]
        reading = CheckpointReading(CheckpointTable(written), {"checkpoint": 7})
        return Mm2Records(reading, topics[0], syncs, topics[1], Positions())
