"""Records that are changed or dropped on their way: a Connect worker's header converter, and transforms.

Each flow is a real MirrorMaker between the same two clusters, killed -9 while it copies, with topics of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration import oracle
from tests.integration.cli import CommandLine, committed_offsets
from tests.integration.clusters import all_syncs
from tests.integration.judge import Judge, told
from tests.integration.killedscene import commit_anywhere, kill_mid_stream, wait_translated
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.seeds import new_seed

pytestmark = pytest.mark.long

GROUPS = 40
EARLY_GROUPS = 10
HEADERS = (
    ("number", b"007", 0.5),
    ("flag", b"true", 0.3),
    ("json", b'{"a": 1}', 0.2),
    ("raw", b"\x00\xff\xfe", 0.2),
    ("empty", b"", 0.2),
    ("nothing", None, 0.2),
)
CONNECT = "org.apache.kafka.connect"
# Lines of the dedicated mode go to all connectors of a flow; a checkpoint has no headers.
DROPPING = {
    "transforms": "dropping, stripping",
    "transforms.dropping.type": f"{CONNECT}.transforms.Filter",
    "transforms.dropping.predicate": "marked",
    "transforms.stripping.type": f"{CONNECT}.transforms.DropHeaders",
    "transforms.stripping.headers": "flag",
    "predicates": "marked",
    "predicates.marked.type": f"{CONNECT}.transforms.predicates.HasHeaderKey",
    "predicates.marked.name": "drop",
}
CHANGING = {
    "transforms": "changing",
    "transforms.changing.type": f"{CONNECT}.transforms.Cast$Value",
    "transforms.changing.spec": "string",
    "value.converter": f"{CONNECT}.storage.StringConverter",
    "header.converter": f"{CONNECT}.converters.ByteArrayConverter",
}


@dataclass(frozen=True)
class Way:
    """A flow, how often it is killed, and what a plan is to find out about it.

    `accept` names the checks that rightly block such a flow's plan.
    """

    options: MirrorOptions
    equality: str
    grades: frozenset[str]
    extras: tuple[tuple[str, bytes | None, float], ...] = HEADERS
    bare: float = 0.0
    kills: int = 1
    accept: tuple[str, ...] = ()
    keeps_values: bool = True


def flow(name: str, **options: Any) -> MirrorOptions:
    return MirrorOptions(f"{name}A", f"{name}B", topics=f".*-{name}-.*", groups=f".*-{name}-.*", **options)


WAYS = {
    "worker": Way(flow("worker", connect=True), "without-headers", frozenset({"exact"}), bare=0.05, kills=2),
    "drop": Way(
        flow("drop", extra={f"dropA->dropB.{key}": line for key, line in DROPPING.items()}),
        "without-headers",
        frozenset({"exact", "bounded"}),
        extras=(("drop", b"yes", 0.03), *HEADERS),
        accept=("missing-on-target",),
    ),
    "change": Way(
        flow("change", connect=True, source_connector=CHANGING),
        "time-and-key",
        frozenset({"bounded", "estimated"}),
        keeps_values=False,
        # Changed records prove no end, and the worker's own offsets topic is not known to the plan.
        accept=("not-drained",),
    ),
}


def converted(lab: Lab, name: str, seed: int) -> Scene:
    """Build a scene of 8,400 records or twice that, and 200 commits, with an MM2 killed while it copies."""
    way = WAYS[name]
    scene = Scene(lab, name, seed, extras=way.extras, bare=way.bare)
    plain, tx = scene.create("plain", 3), scene.create("tx", 2)

    def write() -> None:
        for _ in range(2):
            scene.write([(plain, p) for p in range(3)], 1000)
            scene.write_transactions([(tx, p) for p in range(2)], 400)

    pairs = [(g, place) for g in range(GROUPS) for place in scene.partitions]
    lab.change_mirror(way.options)
    lab.mirror.start()
    lab.mirror.wait_ready()
    for _ in range(way.kills):
        kill_mid_stream(scene, write)
        commit_anywhere(scene, [pair for pair in pairs if pair[0] < EARLY_GROUPS])
        lab.mirror.start()
    # The last record of each partition has a copy: else nothing tells that MM2 has come to its end.
    scene.extras = ()
    for place in scene.partitions:
        scene.write([place], 20)
    lab.mirror.wait_until_replicated(scene.topics, compare_last=way.keeps_values)
    commit_anywhere(scene, [pair for pair in pairs if pair[0] >= EARLY_GROUPS or pair[0] % 3 == 0])
    wait_translated(scene)
    return scene


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two clusters, without an MM2 so far."""
    with Lab(tmp_path_factory.mktemp("converters"), start_mirror=False) as lab:
        yield lab


@pytest.mark.parametrize("name", WAYS)
def test_rows_of_a_flow_that_was_killed_are_true_and_compared_by_what_it_keeps(
    name: str, clusters: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No row loses a record, exact ones are best, bounded ones know their bound, and what was dropped is missed."""
    way, scene, commands = WAYS[name], converted(clusters, name, new_seed()), CommandLine.of(clusters, tmp_path)
    accepted = [word for check in way.accept for word in ("--accept", check)]
    commands.plan("c.plan", "--group", f".*{scene.suffix}", *accepted).expect(0)
    document, truth = commands.document("c.plan"), scene.truth()
    rows = document["rows"]
    assert not scene.contradictions(truth) and scene.kills == way.kills
    assert any(map(oracle.replayed, truth.values())), f"{scene}: nothing was replayed"
    assert committed_offsets(rows) == scene.places and len(rows) == GROUPS * len(scene.partitions)

    named = frozenset(check["subject"] for check in document["checks"] if check["check"] == "missing-on-target")
    dropped = scene.carriers.get("drop", set())
    score = Judge(scene, truth, all_syncs(clusters), not dropped, named).score(rows)
    with capsys.disabled():
        print(f"\n{score}")
    assert not score.complaints, told(score.complaints)
    assert set(score.grades) <= way.grades
    assert {row["equality"] for row in rows} == {way.equality}
    wrong = []
    for row in rows:
        missing = oracle.missing(truth[row["source_topic"], row["partition"]], row["source_committed"])
        assert missing <= dropped, f"{scene}: {row}"
        if row["missing_on_target"] != len(missing) and row["grade"] != "estimated":
            wrong.append((row["group"], row["source_topic"], row["partition"], row["missing_on_target"], len(missing)))
    assert not wrong, f"{scene}: {len(wrong)} rows (missing: said, true), the first are {wrong[:5]}"
