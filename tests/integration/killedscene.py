"""The scene that a cutover is judged on: an MM2 killed -9 twice while it copies, and 600 random commits."""

from collections.abc import Callable, Collection, Iterable

from tests.integration.clusters import (
    READ_SECONDS,
    Commits,
    Partition,
    all_syncs,
    delete_before,
    read_logs,
)
from tests.integration.scene import COMPACTED, Scene
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until

KILLED_COMMITS = 600
KILLED_GROUPS = 80
EARLY_GROUPS = 25


def killed(lab: Lab, seed: int) -> Scene:
    """Build the scene that a cutover is judged on: some 29,000 records, and an MM2 killed -9 twice amid them.

    Topics: `plain` (4 partitions and an empty one; compressed), `tx` (3; transactions, a quarter aborted),
    `compacted` (2), `trimmed` (2; the first third is deleted in the end, below some commits). 600 commits of 80 groups,
    those of 25 groups from between the kills; at the end everything is copied, and MM2 has no news about offsets.
    """
    scene = Scene(lab, "killed", seed)
    plain, tx = scene.create("plain", 5, {"compression.type": "zstd"}), scene.create("tx", 3)
    compacted, trimmed = scene.create("compacted", 2, COMPACTED), scene.create("trimmed", 2)

    def write() -> None:
        for _ in range(2):
            scene.write([(plain, p) for p in range(4)], 900)
            scene.write_transactions([(tx, p) for p in range(3)], 500)
            scene.write_compacted([(compacted, p) for p in range(2)], 500)
            scene.write([(trimmed, p) for p in range(2)], 150)

    pairs = scene.dice.sample([(g, place) for g in range(KILLED_GROUPS) for place in scene.partitions], KILLED_COMMITS)
    kill_mid_stream(scene, write)
    commit_anywhere(scene, [pair for pair in pairs if pair[0] < EARLY_GROUPS])
    lab.mirror.start()
    kill_mid_stream(scene, write)
    lab.mirror.start()
    write()
    scene.wait_replicated()
    # Two thirds of the early groups stay where they were; the rest move now, forwards or back.
    commit_anywhere(scene, [pair for pair in pairs if pair[0] >= EARLY_GROUPS or pair[0] % 3 == 0])
    wait_translated(scene)
    wait_cleaned(scene, [compacted])
    for p in range(2):
        delete_before(lab.source_bootstrap, trimmed, p, len(scene.written[trimmed, p]) // 3)
    return scene


def kill_mid_stream(scene: Scene, write: Callable[[], None]) -> None:
    """Call `write` three times, and kill MM2 with -9 while it copies that.

    It has recorded that it copied some of the first part, has gone on for half as many records as the second has, and
    has most of the third still to copy, on a machine of any speed: quotas hold its producers. What it has not recorded
    it copies again next time, but for exactly-once.
    """
    mirror = scene.lab.mirror

    def recorded() -> dict[Partition, int]:
        return {place: offset for place, offset in mirror.progress.recorded().items() if place in scene.written}

    before = recorded()
    write()
    wait_until(lambda: recorded() != before, READ_SECONDS, f"MM2 to record that it copies {scene}")
    with mirror.recording_held():
        last_recorded = recorded()
        copied, written = scene.copied(), scene.records
        write()
        goal = copied + (scene.records - written) // 2
        wait_until(lambda: scene.copied() >= goal, READ_SECONDS, f"MM2 to be in the middle of copying {scene}")
        with mirror.copying_held():
            write()
            mirror.kill()
    scene.kills += 1
    assert is_behind(scene), f"{scene}: MM2 had copied everything before it was killed"
    assert scene.lab.options.exactly_once or recorded() == last_recorded, f"{scene}: MM2 had recorded what it copied"


def is_behind(scene: Scene) -> bool:
    """True if some partition's copy does not end with the source's last record."""
    return any(
        not place.target.records or place.target.records[-1].identity != place.source.records[-1].identity
        for place in scene.truth().values()
        if place.source.records
    )


def commit_anywhere(scene: Scene, pairs: Iterable[tuple[int, Partition]]) -> None:
    """Commit each pair of a group's number and a partition: at the start, at the end, or anywhere between.

    Some stand right at one of MM2's syncs or just behind it, where an offset that is wrong by one shows.
    """
    ends, syncs = scene.source_ends(), all_syncs(scene.lab)
    commits: Commits = {}
    for number, place in pairs:
        low, high = ends[place]
        chance, near = scene.dice.random(), syncs.get(place, [])
        if chance < 0.1:
            offset = low
        elif chance < 0.25:
            offset = high
        elif chance < 0.5 and near:
            offset = min(scene.dice.choice(near)[0] + scene.dice.randrange(3), high)
        else:
            offset = scene.dice.randint(low, high)
        commits.setdefault(scene.group(f"g{number:03}"), {})[place] = offset
    scene.commit(commits)


def wait_translated(scene: Scene) -> None:
    """Wait until MM2 has no news about offsets; g000 goes to the end of its partitions for that.

    MM2 writes no checkpoint of a commit below the last sync that it found when it was started: a group that stands
    below that everywhere would be waited for in vain.
    """
    caught_up, ends = scene.group("g000"), scene.source_ends()
    scene.commit({caught_up: {place: ends[place][1] for place in scene.commits[caught_up]}})
    scene.lab.mirror.wait_checkpoints([caught_up])


def wait_cleaned(scene: Scene, topics: Collection[str], quiet_looks: int = 4) -> None:
    """Wait until the source's cleaner has taken records, and then no cleaner touches the logs for some seconds."""
    places = [place for place in scene.partitions if place[0] in topics]
    copies = [(scene.copy(t), p) for t, p in places]
    looks: list[list[int]] = []

    def quiet() -> bool:
        found = [read_logs(scene.lab.source_bootstrap, places), read_logs(scene.lab.target_bootstrap, copies)]
        looks.append([len(log.records) for logs in found for log in logs.values()])
        cleaned = all(len(found[0][place].records) < len(scene.written[place]) for place in places)
        return cleaned and len(looks) >= quiet_looks and all(look == looks[-1] for look in looks[-quiet_looks:])

    wait_until(quiet, READ_SECONDS, f"the cleaners to be done with {scene}", poll_seconds=1.0)
