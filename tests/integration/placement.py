"""Committed offsets where they are hard to translate: ends, starts, beside syncs, and where MM2 began anew."""

from collections.abc import Collection

from tests.integration.clusters import Commits, Partition, all_syncs, read_logs
from tests.integration.scene import Scene

GROUPS = 60


def commit_densely(scene: Scene, groups: int = GROUPS, prefix: str = "h") -> None:
    """Commit every partition for every group, all in bulk: 60 groups on 8 partitions are 480 rows."""
    ends, syncs, breaks = scene.source_ends(), all_syncs(scene.lab), seams(scene)
    commits: Commits = {}
    for number in range(groups):
        for place, (low, high) in ends.items():
            at = _offset(scene, low, high, syncs.get(place, ()), breaks.get(place, ()))
            commits.setdefault(scene.group(f"{prefix}{number:03}"), {})[place] = at
    scene.commit(commits)


def _offset(scene: Scene, low: int, high: int, syncs: Collection[tuple[int, int]], breaks: Collection[int]) -> int:
    chance, dice = scene.dice.random(), scene.dice
    if chance < 0.06:
        offset = low
    elif chance < 0.16:
        offset = high - dice.randrange(2)
    elif chance < 0.3 and low:
        offset = dice.randint(0, low)
    elif chance < 0.5 and syncs:
        offset = dice.choice(list(syncs))[0] + dice.randint(-1, 1)
    elif chance < 0.7 and breaks:
        offset = dice.choice(list(breaks)) + dice.randint(-2, 2)
    else:
        offset = dice.randint(low, high)
    return min(max(offset, 0), high)


def seams(scene: Scene) -> dict[Partition, list[int]]:
    """Source offsets on both sides of every place where the copies go back: MM2 began anew there."""
    logs = read_logs(scene.lab.target_bootstrap, [(scene.copy(t), p) for t, p in scene.partitions])
    found = {}
    for topic, p in scene.partitions:
        origin = {record.identity: record.offset for record in scene.written[topic, p]}
        order = [origin[r.identity] for r in logs[scene.copy(topic), p].records if r.identity in origin]
        found[topic, p] = [u for before, u in zip(order, order[1:], strict=False) if u <= before for u in (before, u)]
    return found
