"""Metadata byte for byte, single offsets removed, and names that other people chose: judged by Kafka's own Admin."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tests.integration.cli import CommandLine, Place, Ran
from tests.integration.clusters import CALL_SECONDS, QUIET, create_topic
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.lab.lab import Lab

PLAN = "cutover.plan"
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RECORDS, PARTITIONS = 20, 3
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
STREAMS = "AgAAAZBqMsUAAAAAAAAAAQ=="
LONGEST = ("é\x00名\n" * 1024)[:4096]
METADATA = (STREAMS, "\x00", "\x00é\x00\x00", LONGEST, 'plain \\ "quoted" ,;\r\n', "😀", "")
NAMES = (
    "=cmd|' /C calc'!A0", "+1+1", "-1", "@SUM(1)", "\t=1", "a,b;c", "it's \"quoted\"", "tab\there",
    "line\nbreak\n\nand", "[red]x[/red]", "\x1b[31m\x1b]0;x\x07", "\x9b31mC1", "<b>&amp;<script>alert(1)</script>",
    "\u540d\u524d \u00e9\u202e\u200b\U0001f600", '{"json": [1]}', "%s {0} ${x}", "$(id) `id`", "back\\slash\\n",
    " blank", "#", "-- --help",
)  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """A plan for groups with metadata on their commits, and what of them stands on the target before."""

    commands: CommandLine
    lab: Lab
    target: JavaJudge
    suffix: str
    wanted: HeldByGroup
    before: HeldByGroup

    def held(self) -> HeldByGroup:
        """What our groups hold on the target; a group that is not there is left out."""
        return {group: held for group, held in self.target.held().items() if group.endswith(self.suffix)}

    @property
    def rows(self) -> dict[Place, tuple[int, str]]:
        """What is planned, and planned to be: by group, copied topic and partition."""
        return {(g, t, p): commit for g, held in self.wanted.items() for (t, p), commit in held.items()}


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    suffix = f"-{uuid4().hex[:8]}"
    # The longest name whose copy's is one of 249 characters, with a start that spreadsheets take for a formula.
    topic = f"-2{suffix}." + "t" * (249 - len(lab.options.source_alias) - 1 - len(f"-2{suffix}."))
    create_topic(lab.source_bootstrap, topic, PARTITIONS)
    sender = Producer({"bootstrap.servers": lab.source_bootstrap, **QUIET})
    for number in range(RECORDS * PARTITIONS):
        sender.produce(topic, f"{number}", partition=number % PARTITIONS)
    assert sender.flush(CALL_SECONDS) == 0
    copy = f"{lab.options.source_alias}.{topic}"
    committed: HeldByGroup = {}
    before: HeldByGroup = {}
    for number, start in enumerate((*NAMES, "x" * (249 - len(suffix)))):
        name = start + suffix
        committed[name] = {(topic, p): (5 + p, METADATA[(number + p) % len(METADATA)]) for p in range(PARTITIONS)}
        if number % 3 == 1:
            # Some offsets of the group stand: those of the others have to be removed again, one by one.
            before[name] = {(copy, 0): (2, METADATA[(number + 3) % len(METADATA)])}
        elif number % 3 == 2:
            before[name] = {(copy, 1): (6, "somebody else's"), (copy, 2): (1, "")}
    wanted = {group: {(copy, p): commit for (_, p), commit in held.items()} for group, held in committed.items()}
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("bytes"), warm=True)
    with JavaJudge(lab.source) as source, JavaJudge(lab.target) as target:
        lab.mirror.wait_until_replicated([topic])
        source.commit(committed)
        target.commit(before)
        made = Scene(commands, lab, target, suffix, wanted, before)
        assert made.held() == before
        harmless_run(commands.plan(PLAN, "--group", rf"[\s\S]*{suffix}"), 0)
        rows = commands.document(PLAN)["rows"]
        assert made.rows == {
            (r["group"], r["target_topic"], r["partition"]): (r["target_offset"], r["target_metadata"]) for r in rows
        }
        yield made


def harmless(text: str) -> None:
    """Nothing in it but visible characters and line ends."""
    assert all(line.isprintable() for line in text.split("\n")), [x for x in text.split("\n") if not x.isprintable()][0]


def harmless_run(ran: Ran, exit_code: int) -> None:
    ran.expect(exit_code)
    harmless(ran.stdout)
    harmless(ran.stderr)


def test_no_form_for_people_shows_a_control_character_or_a_formula(scene: Scene) -> None:
    shown = {form: scene.commands.show(PLAN, form) for form in ("table", "csv", "json", "jsonl")}
    for text in shown.values():
        harmless(text)
    cells = [cell for line in csv.reader(io.StringIO(shown["csv"])) for cell in line]
    assert not [cell for cell in cells if cell.startswith(FORMULAS) and not cell.lstrip("-").isdigit()]


def test_kafkas_own_tool_takes_every_name_from_the_kcg_form(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    # Java reads its arguments and writes its output in the locale's encoding.
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    shown = scene.commands.show(PLAN, "kcg")
    # That tool takes a file apart at every line feed, also at one in a name.
    rows = {place: commit for place, commit in scene.rows.items() if "\n" not in place[0]}
    assert {(g, t, int(p)): int(o) for g, t, p, o in csv.reader(io.StringIO(shown, newline=""))} == {
        place: offset for place, (offset, _) in rows.items()
    }
    file = scene.commands.folder / "offsets.csv"
    file.write_text(shown, newline="")
    named = [word for group in scene.wanted for word in ("--group", group)]
    theirs = scene.lab.kafka_tool(
        GROUP_TOOL, "--bootstrap-server", scene.lab.target_bootstrap, "--reset-offsets", "--from-file", str(file),
        *named, "--dry-run",
    )  # fmt: skip
    assert theirs.returncode == 0, theirs
    for group, topic, p in rows:
        assert re.search(
            rf"{re.escape(group)}\s+{re.escape(topic)}\s+{p}\s+{rows[group, topic, p][0]}\s", theirs.stdout
        )


def test_without_java_nothing_is_written_and_the_reason_is_told(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    refused = replace(scene.commands, warm=False).execute(PLAN)
    harmless_run(refused, 3)
    assert "JAVA_HOME is /nowhere" in refused.stdout
    assert scene.held() == scene.before and not list(scene.commands.folder.glob("*.jsonl"))


def test_commits_arrive_byte_for_byte_and_what_stood_before_comes_back(scene: Scene) -> None:
    commands = scene.commands
    harmless_run(commands.apply(PLAN), 0)
    assert scene.held() == scene.before
    harmless_run(commands.execute(PLAN), 0)
    assert scene.held() == scene.before | scene.wanted
    harmless_run(commands.verify(PLAN), 0)
    harmless_run(commands.undo(PLAN), 0)
    assert scene.held() == scene.before
