"""The story: fill two clusters, stop, move every group with the real commands, and count what consumers read."""

import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scripts.demonstration.consumers import copies, read_as_groups
from scripts.demonstration.counting import Copy, replayed
from scripts.demonstration.groups import (
    GROUPS,
    RETENTION,
    RETENTION_SHARE,
    Commits,
    commit_shares,
    committed,
    delete_before,
)
from scripts.demonstration.stage import PROGRAM, DemoError, Stage
from scripts.demonstration.traffic import TOPICS, Place, Traffic
from scripts.demonstration.verdict import Account, report
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.reading import topic_reader
from tests.lab.waiting import LabError, wait_until

FLOW = ("--mm2-config", "mm2.properties", "--source", "A", "--target", "B")
PLAN, SECOND_PLAN = "cutover.plan", "cutover2.plan"
SETTLE = ("--settle", "2")
# Offset syncs as sparse as MM2 writes them by default; aborted records are not copied.
MIRROR = MirrorOptions(offset_lag_max=100, extra={"A.consumer.isolation.level": "read_committed"})
SETTINGS = "export MM2_MIGRATE_MM2_CONFIG=mm2.properties MM2_MIGRATE_SOURCE=A MM2_MIGRATE_TARGET=B"
WAVES = {"wave1.txt": ("billing", "crm"), "wave2.txt": ("shipping",)}
KEPT = ("*.plan", "*.jsonl", "*.csv", "report.html")
KILL_AFTER_RECORDS = 15_000
COPY_DEADLINE_SECONDS = 180.0


def tell(stage: Stage, keep: Path | None = None) -> int:
    """Run the whole demo; returns its exit code. Whatever it started is stopped at the end, and on any error.

    Plans, journals, report and exports go to the folder `keep`, if there is one.
    """
    stage.say(
        "A cutover with mm2-migrate: seven consumer groups move from cluster A to cluster B, which a real "
        "MirrorMaker 2 (MM2) has been filling. Then real consumers start on B, and every record is counted."
    )
    with lab_of(stage) as lab:
        traffic, commits = prepare(stage, lab)
        with stage.step("Is everything there, and has everything stopped?"):
            stage.run("doctor", *FLOW)
            stage.run("status", *FLOW, *SETTLE)
        with stage.step("The plan: read, translate, check; nothing is written to A or B"):
            stage.run("plan", *FLOW, *SETTLE, "--out", PLAN)
            stage.run("show", PLAN)
            stage.run("show", PLAN, "--format", "kcg", into="cutover.csv")
            stage.lines(["$ head -3 cutover.csv", *(stage.folder / "cutover.csv").read_text().splitlines()[:3]])
        with stage.step("Apply: first a dry run, then the very plan that was approved"):
            apply(stage, PLAN, dry_run=True)
            stage.say("The same command again does nothing:")
            stage.run("apply", PLAN, *FLOW, "--approve", fingerprint(stage, PLAN), "--execute")
        with stage.step("A change of mind: rollback"):
            roll_back(stage, lab)
        with stage.step("Once more, with a new plan: the old one is spent"):
            stage.run("plan", *FLOW, *SETTLE, "--out", SECOND_PLAN)
            apply(stage, SECOND_PLAN, dry_run=False)
        with stage.step("Real consumers start on B"):
            code = count(stage, lab, traffic, commits)
        if keep is not None:
            kept(stage, keep)
        print("\nTime:")
        stage.timings()
        return code


@contextmanager
def lab_of(stage: Stage) -> Iterator[Lab]:
    """A lab, not up yet, in a folder of the stage's own; what it started is stopped at the end, and on any error."""
    with tempfile.TemporaryDirectory(prefix="mm2-demo-") as folder:
        stage.folder = Path(folder)
        lab = Lab(stage.folder, stage.kafka, mirror=MIRROR)
        try:
            yield lab
        finally:
            lab.down()


def hand_over(stage: Stage, folder: Path) -> int:
    """Set the scene, and leave the cutover to somebody at another terminal, until Ctrl-C; returns the exit code."""
    stage.say(
        "The clusters, the groups and MirrorMaker 2 (MM2) of the demo, and nothing else: the cutover is yours to make."
    )
    with lab_of(stage) as lab:
        prepare(stage, lab)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(lab.mm2_properties, folder / "mm2.properties")
        for name, groups in WAVES.items():
            (folder / name).write_text("".join(f"{group}\n" for group in groups))
        stage.say("All is set. In another terminal, and then by RUNBOOK.md:")
        stage.lines(["", f"  cd {folder.resolve()}", f"  export PATH={PROGRAM.parent}:$PATH", f"  {SETTINGS}", ""])
        pids = (("A", lab.source.pids()), ("B", lab.target.pids()), ("MM2", [lab.mirror.pid]))
        running = "; ".join(f"{name} {' '.join(map(str, ids))}" for name, ids in pids)
        stage.lines([f"Processes: {running}. `kill -STOP ID` freezes one, `kill -CONT ID` lets it go on.", ""])
        stage.lines(["Ctrl-C here ends them all; your plans and journals stay."])
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
        return 0


def prepare(stage: Stage, lab: Lab) -> tuple[Traffic, Commits]:
    """Fill both clusters and stop everything but MM2."""
    with stage.step("Two Kafka clusters and MirrorMaker 2"):
        start(stage, lab)
    with stage.step("Records, and an MM2 that is killed with -9 amid them"):
        traffic = write(stage, lab)
    with stage.step("Consumers at different places; then everything stops"):
        return traffic, stop(stage, lab, traffic)


def kept(stage: Stage, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in KEPT:
        for file in stage.folder.glob(pattern):
            shutil.copy2(file, folder)
    stage.say(f"Plans, journals and report.html are in {folder}.")


def start(stage: Stage, lab: Lab) -> None:
    lab.up()
    stage.note(f"Kafka {lab.source.version}: A at {lab.source_bootstrap}, B at {lab.target_bootstrap}")
    stage.note("MM2 copies A -> B, with its default offset.lag.max of 100")


def write(stage: Stage, lab: Lab) -> Traffic:
    traffic = Traffic(lab.source)
    traffic.create_topics()
    stage.note("topics: " + ", ".join(f"{t.name} ({t.partitions + t.empty})" for t in TOPICS))
    wait_until(lambda: copies_ready(lab), COPY_DEADLINE_SECONDS, "MM2 to create their copies on B")
    traffic.start()
    kill_amid(lab, traffic)
    still = "producers still writing" if traffic.running else "producers done"
    stage.note(f"MM2 killed with -9 when it had copied {copied(lab):,} records; {still}")
    traffic.finish()
    stage.note(f"{traffic.records:,} records written, {traffic.aborted:,} of them in aborted transactions")
    lab.mirror.start()
    lab.mirror.wait_ready()
    stage.note("MM2 is back, and copies what it had not recorded as copied a second time")
    lab.mirror.wait_until_replicated([topic.name for topic in TOPICS])
    stage.note(f"everything is on B: its logs end at {copied(lab):,} in all")
    return traffic


def kill_amid(lab: Lab, traffic: Traffic) -> None:
    """Kill MM2 where it has copied records that it has not recorded, and others not at all; quotas hold it there."""
    mirror = lab.mirror

    def wait_for(what: str, holds: Callable[[], bool]) -> None:
        def unless_trouble() -> bool:
            traffic.raise_trouble()
            return holds()

        wait_until(unless_trouble, COPY_DEADLINE_SECONDS, f"MM2 to {what}")

    wait_for("record what it has copied", lambda: bool(mirror.progress.recorded()))
    with mirror.recording_held():
        wait_for("copy the first records", lambda: copied(lab) >= KILL_AFTER_RECORDS)
        # Before the hold: the one request that it lets through may be written at once.
        before = copied(lab)
        with mirror.copying_held():
            traffic.go_on()
            wait_for("copy a few more", lambda: copied(lab) > before)
            mirror.kill()


def stop(stage: Stage, lab: Lab, traffic: Traffic) -> Commits:
    with topic_reader(lab.source_bootstrap) as reader:
        ends = {place: reader.bounds(*place)[1] for place in traffic.written}
    live = {group.name: (group.topic, partitions_of(group.topic)) for group in GROUPS if group.consumes}
    read_as_groups(lab.source_bootstrap, live)
    commit_shares(lab.source, ends)
    delete_before(lab.source.admin(), RETENTION, int(ends[RETENTION] * RETENTION_SHARE))
    commits = committed(lab.source)
    for group in GROUPS:
        lag = sum(ends[place] - offset for place, offset in commits[group.name].items())
        stage.note(f"{group.name:<13} {group.topic:<10} lag {lag:>6,}  {group.words}")
    caught_up = [group.name for group in GROUPS if set(group.places.values()) <= {0, 1}]
    lab.mirror.wait_checkpoints(caught_up, caught_up=True, quiet_seconds=2.0)
    stage.note("MM2 has written its last checkpoints; producers and consumers are stopped")
    return commits


def apply(stage: Stage, plan: str, dry_run: bool) -> None:
    if dry_run:
        stage.run("apply", plan, *FLOW)
    stage.run("apply", plan, *FLOW, "--approve", fingerprint(stage, plan), "--execute")
    stage.run("verify", plan, *FLOW)


def fingerprint(stage: Stage, plan: str) -> str:
    """The fingerprint that a reviewer passes on."""
    digits: str = json.loads(stage.ask("show", plan, "--format", "json"))["fingerprint"]
    return digits


def roll_back(stage: Stage, lab: Lab) -> None:
    before = set(committed(lab.target))
    stage.run("rollback", PLAN, *FLOW)
    stage.run("rollback", PLAN, *FLOW, "--approve", fingerprint(stage, PLAN), "--execute")
    after = set(committed(lab.target))
    stage.say(f"Groups with offsets on B: {len(before)} before, {len(after)} now, as before the cutover.")
    if after:
        raise DemoError(f"after the rollback these groups still have offsets on B: {', '.join(sorted(after))}.")


def count(stage: Stage, lab: Lab, traffic: Traffic, commits: Commits) -> int:
    moved = committed(lab.target)
    stage.say(f"{len(moved)} groups have offsets on B. Each gets a consumer, which reads to the end.")
    topics = {g.name: (lab.options.target_topic(g.topic), partitions_of(g.topic)) for g in GROUPS}
    read = read_as_groups(lab.target_bootstrap, topics)
    stage.note("all consumers are at the end")
    everything: dict[Place, list[Copy]] = {}
    for topic in TOPICS:
        everything |= copies(lab.target_bootstrap, lab.options.target_topic(topic.name), partitions_of(topic.name))
    stage.run("verify", SECOND_PLAN, *FLOW, "--consumers-ran")
    stage.run("report", SECOND_PLAN, *FLOW, "--out", "report.html")
    stage.say(f"On B, {sum(map(replayed, everything.values())):,} records stand twice: MM2 was killed amid them.")
    print()
    account = Account(
        groups=GROUPS,
        compacted=frozenset(topic.name for topic in TOPICS if topic.compacted),
        written=traffic.written,
        copies={(source_name(lab, topic), p): records for (topic, p), records in everything.items()},
        commits=commits,
        checkpoints={
            (group, source_name(lab, topic), p): pair.downstream
            for (group, topic, p), pair in lab.mirror.progress.checkpoints().items()
        },
        read={
            group: {(source_name(lab, topic), p): ids for (topic, p), ids in places.items()}
            for group, places in read.items()
        },
    )
    verdict = report(account)
    stage.lines(verdict.table)
    for note in verdict.notes:
        stage.say(note)
    stage.lines(["", verdict.closing])
    return 1 if verdict.lost else 0


def partitions_of(name: str) -> int:
    return next(topic.partitions + topic.empty for topic in TOPICS if topic.name == name)


def source_name(lab: Lab, target_topic: str) -> str:
    return target_topic.removeprefix(lab.options.target_topic(""))


def copies_ready(lab: Lab) -> bool:
    """Whether B has a copy of every topic, and a leader for each of their partitions."""
    with topic_reader(lab.target_bootstrap) as reader:
        known = [reader.partitions(lab.options.target_topic(topic.name)) for topic in TOPICS]
    if [len(partitions) for partitions in known] != [topic.partitions + topic.empty for topic in TOPICS]:
        return False
    try:
        copied(lab)
    except LabError:
        # A topic that was created a moment ago has no leader yet.
        return False
    return True


def copied(lab: Lab) -> int:
    """How far the copies reach, in offsets of all partitions together."""
    with topic_reader(lab.target_bootstrap) as reader:
        names = [lab.options.target_topic(topic.name) for topic in TOPICS]
        return sum(reader.bounds(name, p)[1] for name in names for p in reader.partitions(name))
