"""Random topics with MM2s that were killed, retention, compaction, transactions, strangers and filters, audited.

What is said of every record is what its identity says, or that nobody can decide it.
"""

from collections import Counter
from random import Random

from migrate.extras.audit import records
from migrate.extras.audit.stretches import Cut
from migrate.extras.audit.verdict import Category, Verdict
from migrate.model import Side
from tests.extras.audit.auditlogs import Topic, Truth
from tests.extras.audit.spark.auditframes import audited
from tests.seeds import new_seed

SCENES, SCENES_WITH_LONG = 1, 50
# With these nearly every category is there.
ROUGH = frozenset({"restarts", "drops", "changes", "local-writers", "transactions", "target-retention"})
SOURCE = {Category.MISSING, Category.NOT_COPIED_YET, Category.SUPERSEDED, Category.CHANGED, Category.MAYBE_COPIED}
UNDECIDED = Category.MAYBE_COPIED, Category.NO_ORIGINAL_VISIBLE
# What sums may tell of a stretch that only one side has: how many records are that, and not which.
BY_SUMS = {*UNDECIDED, Category.NOT_COPIED_YET}


def judged_topic(spark, topic):
    """Audit a topic; return what was found, and all that is wrong with it."""
    worlds = [each.world for each in topic.partitions]
    compacted = frozenset(side for side in Side if f"{side}-compaction" in topic.troubles)
    open_on_source = frozenset(p for p, world in enumerate(worlds) if world.source_open)
    audit, named, _ = audited(
        spark,
        [each.logs() for each in topic.partitions],
        Cut(topic.calibration.equality, 200, 5),
        topic.calibration.lasts,
        target_logs={p: world.target_log for p, world in enumerate(worlds)},
        compacted=compacted,
        only_compacted=Side.SOURCE in compacted and "source-retention" not in topic.troubles,
        open_on_source=open_on_source,
        open_on_target=frozenset(p for p, world in enumerate(worlds) if world.target_open),
        unproven=tuple(f"partition {p}: a transaction is open" for p in open_on_source),
    )
    told = {(n.partition, n.category in SOURCE, n.offset): n.category for n in named}
    truths = [Truth.of(each, topic.calibration) for each in topic.partitions]
    may = {(p, True, offset): each for p, truth in enumerate(truths) for offset, each in truth.source.items()}
    may |= {(p, False, offset): each for p, truth in enumerate(truths) for offset, each in truth.target.items()}
    wrong = [
        (place, told.get(place), may.get(place))
        for place in sorted(told.keys() | may.keys())
        if told.get(place) not in may.get(place, {None}) and (place in told or not BY_SUMS & may[place])
    ]
    counts = Counter(told.values())
    untold = [each for place, each in may.items() if place not in told]
    by_sums = {each: audit.counts.get(each, 0) - counts[each] for each in BY_SUMS}
    counts.update(by_sums)
    if sum(by_sums.values()) < sum(None not in each for each in untold) or any(
        not sum(each == {category} for each in untold) <= number <= sum(category in each for each in untold)
        for category, number in by_sums.items()
    ):
        wrong.append((by_sums, untold))
    counts[Category.COPIED] = sum(truth.copied for truth in truths)
    counts[Category.COPIED_AGAIN] = sum(truth.copied_again for truth in truths)
    if +counts != audit.counts:
        wrong.append((+counts, audit.counts))
    lacks = {each for each in SOURCE if counts[each]} - {Category.SUPERSEDED}
    is_complete, is_incomplete = (audit.verdict is each for each in (Verdict.COMPLETE, Verdict.INCOMPLETE))
    if is_complete and lacks or is_incomplete != (Category.MISSING in lacks):
        wrong.append((audit.verdict, lacks))
    return audit, wrong


def test_what_is_said_of_every_record_is_what_its_identity_says(spark, request, monkeypatch):
    monkeypatch.setattr(records, "NAMED", tuple(Category))
    is_long, dice, total = request.config.getoption("--long"), Random(new_seed()), Counter()
    for number in range(SCENES_WITH_LONG if is_long else SCENES):
        seed = dice.randrange(10**6)
        topic = Topic.some(seed) if number else Topic.of(seed, ROUGH)
        equality = topic.calibration.equality
        # One whose records agree in nothing is never compared; of equal records only counts can be told.
        if equality is not None and not any(each.has_twins(equality) for each in topic.partitions):
            audit, wrong = judged_topic(spark, topic)
            assert not wrong, f"Topic.of({seed}, {set(topic.troubles)}): {topic.calibration}"
            total.update(audit.counts)
    shares = {category: number / total.total() for category, number in total.items()}
    print(", ".join(f"{category} {share:.1%}" for category, share in sorted(shares.items())))
    assert not is_long or sum(shares.get(category, 0) for category in UNDECIDED) < 0.25
