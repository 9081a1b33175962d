"""Metadata byte for byte, single offsets removed, and names that other people chose: judged by Kafka's own Admin."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

import pytest

from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import create_topic
from tests.integration.conftest import GROUP_TOOL
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.lab.lab import Lab

pytestmark = pytest.mark.kafka

RECORDS, PARTITIONS = 20, 3
STREAMS = "AgAAAZBqMsUAAAAAAAAAAQ=="
LONGEST = ("é\x00名\n" * 1024)[:4096]
METADATA = (STREAMS, "\x00", "\x00é\x00\x00", LONGEST, 'plain \\ "quoted" ,;\r\n', "😀", "")
NAMES = (
    "=cmd|' /C calc'!A0", "+1+1", "-1", "@SUM(1)", "\t=1", "a,b;c", "it's \"quoted\"", "tab\there",
    "line\nbreak\r\nand", "[red]x[/red]", "\x1b[31m\x1b]0;x\x07", "\x9b31mC1", "<b>&amp;<script>alert(1)</script>",
    "\u540d\u524d \u00e9\u202e\u200b\U0001f600", '{"json": [1]}', "%s {0} ${x}", "$(id) `id`", "back\\slash\\n",
    " blank", "#", "-- --help",
)  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """Groups of the source with metadata on their commits, and what of them stands on the target before."""

    commands: CommandLine
    lab: Lab
    source: JavaJudge
    target: JavaJudge
    topic: str
    suffix: str
    wanted: HeldByGroup
    before: HeldByGroup

    def held(self) -> HeldByGroup:
        """What our groups hold on the target; a group that is not there is left out."""
        return {group: held for group, held in self.target.held().items() if group.endswith(self.suffix)}


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if lab.external:
        pytest.skip("the judge speaks to the lab's clusters only")
    suffix = f"-{uuid4().hex[:8]}"
    # The longest name whose copy's is one of 249 characters, with a start that spreadsheets take for a formula.
    topic = f"-2{suffix}." + "t" * (249 - len(lab.options.source_alias) - 1 - len(f"-2{suffix}."))
    create_topic(lab.source_bootstrap, topic, PARTITIONS)
    produce(lab, topic)
    copy = f"{lab.options.source_alias}.{topic}"
    names = [*(name + suffix for name in NAMES), "x" * (249 - len(suffix)) + suffix]
    with ExitStack() as stack:
        source, target = (stack.enter_context(JavaJudge(cluster)) for cluster in (lab.source, lab.target))
        committed: HeldByGroup = {}
        before: HeldByGroup = {}
        for number, name in enumerate(names):
            committed[name] = {(topic, p): (5 + p, METADATA[(number + p) % len(METADATA)]) for p in range(PARTITIONS)}
            if number % 3 == 1:
                # Some offsets of the group stand: those of the others have to be removed again, one by one.
                before[name] = {(copy, 0): (2, METADATA[(number + 3) % len(METADATA)])}
            elif number % 3 == 2:
                before[name] = {(copy, 1): (6, "somebody else's"), (copy, 2): (1, "")}
        lab.mirror.wait_until_replicated([topic])
        source.commit(committed)
        target.commit(before)
        wanted = {group: {(copy, p): commit for (_, p), commit in held.items()} for group, held in committed.items()}
        commands = CommandLine.of(lab, tmp_path_factory.mktemp("bytes"))
        yield Scene(commands, lab, source, target, topic, suffix, wanted, before)


def produce(lab: Lab, topic: str) -> None:
    from confluent_kafka import Producer

    sender = Producer({"bootstrap.servers": lab.source_bootstrap, "log_level": 0})
    for number in range(RECORDS * PARTITIONS):
        sender.produce(topic, f"{number}", partition=number % PARTITIONS)
    assert sender.flush(30) == 0


def harmless(text: str) -> None:
    """Nothing in it but visible characters and line ends."""
    assert all(line.isprintable() for line in text.split("\n")), [x for x in text.split("\n") if not x.isprintable()][0]


def harmless_run(ran: Ran, exit_code: int) -> None:
    ran.expect(exit_code)
    harmless(ran.stdout)
    harmless(ran.stderr)


def test_metadata_and_names_go_all_the_way_and_back(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = scene.commands
    assert scene.held() == scene.before
    harmless_run(commands.plan("cutover.plan", "--group", rf"[\s\S]*{scene.suffix}"), 0)

    shown = {form: commands.show("cutover.plan", form) for form in ("table", "csv", "json", "jsonl", "kcg")}
    for form in ("table", "csv", "json", "jsonl"):
        harmless(shown[form])
    rows = json.loads(shown["json"])["rows"]
    told = {(r["group"], r["target_topic"], r["partition"]): (r["target_offset"], r["target_metadata"]) for r in rows}
    wanted = {(g, t, p): commit for g, held in scene.wanted.items() for (t, p), commit in held.items()}
    assert told == wanted
    cells = [cell for line in csv.reader(io.StringIO(shown["csv"])) for cell in line]
    starts = ("=", "+", "-", "@", "\t", "\r", "\n")
    assert not [cell for cell in cells if cell.startswith(starts) and not cell.lstrip("-").isdigit()]
    kcg = list(csv.reader(io.StringIO(shown["kcg"], newline="")))
    assert {(g, t, int(p), int(o)) for g, t, p, o in kcg} == {(*place, o) for place, (o, _) in wanted.items()}

    file = commands.folder / "offsets.csv"
    file.write_text(shown["kcg"], newline="")
    named = [word for group in scene.wanted for word in ("--group", group)]
    theirs = scene.lab.kafka_tool(
        GROUP_TOOL, "--bootstrap-server", scene.lab.target_bootstrap, "--reset-offsets", "--from-file", str(file),
        *named, "--dry-run",
    )  # fmt: skip
    assert "rror" not in theirs.stdout + theirs.stderr, theirs
    assert sum(scene.suffix in line and copy_of(scene) in line for line in theirs.stdout.splitlines()) == len(wanted)

    with monkeypatch.context() as without_java:
        without_java.setenv("JAVA_HOME", "/nowhere")
        refused = commands.execute("cutover.plan")
        harmless_run(refused, 3)
        assert "JAVA_HOME is /nowhere" in refused.stdout
    assert scene.held() == scene.before and not list(commands.folder.glob("*.jsonl"))

    harmless_run(commands.apply("cutover.plan"), 0)
    assert scene.held() == scene.before
    harmless_run(commands.execute("cutover.plan"), 0)
    assert scene.held() == scene.before | scene.wanted
    harmless_run(commands.verify("cutover.plan"), 0)
    harmless_run(commands.execute("cutover.plan"), 0)
    harmless_run(commands.rollback("cutover.plan"), 0)
    harmless_run(commands.undo("cutover.plan"), 0)
    assert scene.held() == scene.before


def copy_of(scene: Scene) -> str:
    return f"{scene.lab.options.source_alias}.{scene.topic}"
