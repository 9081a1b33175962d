"""Records that are changed or dropped on their way: a Connect worker's header converter, and transforms.

Each flow is a real MirrorMaker between the same two clusters, killed -9 while it copies, with topics of its own.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Message

from tests.integration import oracle
from tests.integration.cli import CommandLine
from tests.integration.clusters import Partition, all_syncs, identity, read_logs
from tests.integration.judge import Judge, Row, Score, told
from tests.integration.killedscene import commit_anywhere, kill_mid_stream, wait_translated
from tests.integration.oracle import Truth
from tests.integration.scene import Scene
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.reading import as_bytes
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

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Content:
    """A record as it stands in a log."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def base64_of(part: bytes | None) -> bytes | None:
    """What Connect makes of bytes that it is to write as text."""
    return None if part is None else b64encode(part)


def headers_anew(record: Content) -> Content:
    return Content(
        record.timestamp, record.key, record.value, tuple((name, base64_of(value)) for name, value in record.headers)
    )


def without_flag(record: Content) -> Content:
    headers = tuple((name, value) for name, value in record.headers if name != "flag")
    return Content(record.timestamp, record.key, record.value, headers)


def values_anew(record: Content) -> Content:
    return Content(record.timestamp, record.key, base64_of(record.value), record.headers)


@dataclass(frozen=True)
class Way:
    """A flow, what it makes of a record, how often it is killed, and what a plan is to find out about it.

    `accept` names the checks that rightly block such a flow's plan.
    """

    options: MirrorOptions
    changed: Callable[[Content], Content]
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
    "worker": Way(
        flow("worker", connect=True), headers_anew, "without-headers", frozenset({"exact"}), bare=0.05, kills=2
    ),
    "drop": Way(
        flow("drop", extra={f"dropA->dropB.{key}": line for key, line in DROPPING.items()}),
        without_flag,
        "without-headers",
        frozenset({"exact", "bounded"}),
        extras=(("drop", b"yes", 0.03), *HEADERS),
        accept=("missing-on-target",),
    ),
    "change": Way(
        flow("change", connect=True, source_connector=CHANGING),
        values_anew,
        "time-and-key",
        frozenset({"bounded", "estimated"}),
        keeps_values=False,
        # Changed records prove no end, and the worker's own offsets topic is not known to the plan.
        accept=("not-drained",),
    ),
}


@dataclass(frozen=True, repr=False)
class Rehearsal:
    """A scene, its plan's rows beside the truth, which was read after that, and what they are worth."""

    way: Way
    scene: Scene
    rows: list[tuple[Row, Truth]]
    score: Score

    @property
    def dropped(self) -> set[str]:
        return self.scene.carriers.get("drop", set())


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


def contents(bootstrap: str, partitions: list[Partition]) -> dict[str, Content]:
    """Every record of whole logs by its identity; of several copies the last one."""
    found = {}

    def look(message: Message) -> None:
        headers: Any = message.headers() or ()
        found[identity(message)] = Content(
            message.timestamp()[1], as_bytes(message.key()), as_bytes(message.value()), tuple(headers)
        )

    read_logs(bootstrap, partitions, look)
    return found


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two clusters, without an MM2 so far."""
    own_clusters_only()
    with Lab(tmp_path_factory.mktemp("converters"), start_mirror=False) as lab:
        yield lab


@pytest.fixture(scope="module", params=WAYS)
def rehearsal(request: pytest.FixtureRequest, clusters: Lab, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    scene = converted(clusters, request.param, new_seed())
    way, commands = WAYS[request.param], CommandLine.of(clusters, tmp_path_factory.mktemp(request.param))
    accepted = [word for check in way.accept for word in ("--accept", check)]
    commands.plan("c.plan", "--group", f".*{scene.suffix}", *accepted).expect(0)
    document, truth = commands.document("c.plan"), scene.truth()
    assert not scene.contradictions(truth)
    named = frozenset(check["subject"] for check in document["checks"] if check["check"] == "missing-on-target")
    whole = "drop" not in scene.carriers
    score = Judge(scene, truth, all_syncs(clusters), whole, named).score(document["rows"])
    return Rehearsal(
        way, scene, [(row, truth[row["source_topic"], row["partition"]]) for row in document["rows"]], score
    )


def test_records_come_out_as_the_flow_makes_them(rehearsal: Rehearsal) -> None:
    scene, way = rehearsal.scene, rehearsal.way
    source = contents(scene.lab.source_bootstrap, scene.partitions)
    target = contents(scene.lab.target_bootstrap, [(scene.copy(t), p) for t, p in scene.partitions])
    assert source.keys() - target.keys() == source.keys() & rehearsal.dropped
    expected = {name: way.changed(record) for name, record in source.items()}
    assert expected != source
    assert {name: target[name] for name in source.keys() & target.keys()} == {
        name: record for name, record in expected.items() if name in target
    }


def test_the_plan_has_every_commit_of_a_flow_that_was_killed(rehearsal: Rehearsal) -> None:
    scene = rehearsal.scene
    found = {
        (row["group"], row["source_topic"], row["partition"]): row["source_committed"] for row, _ in rehearsal.rows
    }
    assert found == scene.places
    assert len(found) == GROUPS * len(scene.partitions)
    assert scene.kills == rehearsal.way.kills
    assert any(oracle.replayed(place) for _, place in rehearsal.rows), f"{scene}: nothing was replayed"


def test_no_row_loses_a_record(rehearsal: Rehearsal) -> None:
    found = rehearsal.score.of("lost", "missing", "hidden", "nowhere")
    assert not found, told(found)


def test_grades_are_true(rehearsal: Rehearsal, capsys: pytest.CaptureFixture[str]) -> None:
    """Exact rows stand at the best offset, and bounded ones read no more records twice than they say."""
    with capsys.disabled():
        print(f"\n{rehearsal.score}")
    found = rehearsal.score.of("not-best", "bound")
    assert not found, told(found)
    assert set(rehearsal.score.grades) <= rehearsal.way.grades


def test_rows_miss_what_was_dropped_and_say_so(rehearsal: Rehearsal) -> None:
    wrong = []
    for row, truth in rehearsal.rows:
        missing = oracle.missing(truth, row["source_committed"])
        assert missing <= rehearsal.dropped, f"{rehearsal.scene}: {row}"
        if row["missing_on_target"] != len(missing) and row["grade"] != "estimated":
            wrong.append((row["group"], row["source_topic"], row["partition"], row["missing_on_target"], len(missing)))
    assert not wrong, f"{rehearsal.scene}: {len(wrong)} rows (missing: said, true), the first are {wrong[:5]}"


def test_records_are_compared_by_what_the_flow_keeps(rehearsal: Rehearsal) -> None:
    assert {row["equality"] for row, _ in rehearsal.rows} == {rehearsal.way.equality}
