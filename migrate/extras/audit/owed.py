"""What the groups of a plan are owed: the source's records from their commits on. Pure.

A group reads the target from where the plan puts it. A copy before the lowest such offset of a partition is of no use
to any of its groups, and what is missing below the lowest commit concerns none: neither is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from migrate.errors import UsageError
from migrate.extras.audit.pin import PinnedTopic
from migrate.extras.audit.verdict import Category, TopicAudit, Verdict
from migrate.model import Decision
from migrate.plan.plan import UNDO, Header, Plan, refuse_empty, refuse_rules


class Place(NamedTuple):
    """A group on a partition: it is owed what the source has from `source_offset` on, and reads `target_offset` on."""

    group: str
    partition: int
    source_offset: int
    target_offset: int


@dataclass(frozen=True)
class Owed:
    """Where the groups of a plan stand, by topic of the source."""

    header: Header
    fingerprint: str
    places: Mapping[str, Sequence[Place]]

    @classmethod
    def of(cls, plan: Plan) -> "Owed":
        """Return what a plan's groups are owed; raises `UsageError` or `Refused` where there is no such thing."""
        refuse_rules(plan, "audit run")
        refuse_empty(plan, "audit")
        if plan.header.kind == UNDO or plan.header.failback:
            raise UsageError(
                f"Plan {plan.short_fingerprint} is {'an undo' if plan.header.kind == UNDO else 'a way back'}: "
                "its groups go to where the originals are.",
                "Name the plan of a cutover.",
            )
        places: dict[str, list[Place]] = {}
        fields = ("source_topic", "group", "partition", "source_committed", "decision", "target_offset", "target_prior")
        for topic, group, partition, committed, decision, planned, prior in plan.rows.values(*fields):
            stands = prior if decision in (Decision.KEEP, Decision.SKIP) else planned
            # Without a commit a group begins with all there is; where none is planned, any copy may be read.
            places.setdefault(topic, []).append(Place(group, partition, committed or 0, stands or 0))
        return cls(plan.header, plan.fingerprint, places)

    @property
    def partitions(self) -> dict[str, set[int]]:
        """The partitions of each topic that groups are owed something of."""
        return {topic: {place.partition for place in places} for topic, places in self.places.items()}

    def part(self, topic: PinnedTopic) -> PinnedTopic:
        """Return of a pinned topic what some group is owed, and what of the plan does not fit its logs."""
        places = self.places[topic.topic]
        begins: dict[int, tuple[int, int]] = {}
        for place in places:
            source, target = begins.get(place.partition, (place.source_offset, place.target_offset))
            begins[place.partition] = min(source, place.source_offset), min(target, place.target_offset)
        owed_from = frozenset((place.partition, place.source_offset) for place in places)
        named = (topic.topic, self.header.source_alias), (topic.target, self.header.target_alias)
        planned_ids = (
            self.header.source_topic_ids.get(topic.topic, ""),
            self.header.target_topic_ids.get(topic.target, ""),
        )
        anew = [
            f"{name} on {alias} was created anew since the plan was made"
            for (name, alias), planned, now in zip(named, planned_ids, topic.ids, strict=True)
            if planned and now and planned != now
        ]
        beyond = [
            f"partition {p} ends at {logs[p].end} on {alias}, below {begins[p][at]}, from which a group reads"
            for at, (logs, (_, alias)) in enumerate(zip((topic.source_logs, topic.target_logs), named, strict=True))
            for p in logs
            if begins[p][at] > logs[p].end
        ]
        return replace(topic, begins=begins, owed_from=owed_from, unproven=(*topic.unproven, *anew, *beyond))

    def told(self, audits: Iterable[TopicAudit]) -> dict[str, Any]:
        """Return what is told of the plan: its fingerprint, how many groups it has, and those that lack something."""
        groups_at: dict[tuple[str, int, int], list[str]] = {}
        topics_of: dict[str, set[str]] = {}
        for topic, places in self.places.items():
            for place in places:
                groups_at.setdefault((topic, place.partition, place.source_offset), []).append(place.group)
                topics_of.setdefault(place.group, set()).add(topic)
        lacks: dict[str, list[dict[str, Any]]] = {}
        undecided = set()
        for audit in audits:
            if audit.is_undecided:
                undecided.add(audit.topic)
            for lack in audit.lacks:
                told = {"topic": audit.topic, **lack._asdict()}
                for group in groups_at[audit.topic, lack.partition, told.pop("owed_from")]:
                    lacks.setdefault(group, []).append(told)
        open_groups = []
        for group, topics in sorted(topics_of.items()):
            of_group, unproven = lacks.get(group, []), sorted(topics & undecided)
            if of_group or unproven:
                short = any(lack["category"] == Category.MISSING for lack in of_group)
                verdict = Verdict.INCOMPLETE if short else Verdict.NOT_PROVEN
                open_groups.append(
                    {"group": group, "verdict": verdict, "lacks": of_group, "not_proven_topics": unproven}
                )
        return {"fingerprint": self.fingerprint, "groups": len(topics_of), "open": open_groups}
