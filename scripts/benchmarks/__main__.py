"""scripts/bench: without a name, what there is; with one, the measurement."""

import argparse
from pathlib import Path

from scripts.benchmarks import apply, audit, groups, match, offsets, plan, positions, start
from scripts.benchmarks.command import TREE
from scripts.benchmarks.read import Size, measure

READ = "checkpoints topic to newest checkpoint per key: ours beside Kafka's RemoteClusterUtils.translateOffsets"

MATCH = (
    "commits to proven offsets by comparing records: ours beside one consumer that only reads the same stretches, and "
    "another tree's plans"
)

APPLY = (
    "a plan written to the target: ours beside the same calls made bare, beside kafka-consumer-groups, and another "
    "tree's commands"
)

PLAN = "whole plans of several sizes: where the seconds and the memory go, beside bare calls, and another tree's plan"

START = "how soon each command answers on a small scene, beside kafka-consumer-groups, and another tree's commands"

GROUPS = (
    "all groups of a cluster listed and described: ours beside kafka-consumer-groups --describe --all-groups (what the "
    "offsets topic takes is `scripts/bench offsets`)"
)

OFFSETS = "the offsets topic to newest commit per key: ours beside one consumer that only reads it"

AUDIT = (
    "audits of two logs, whole, with what is planted in a copy: ours beside kafka-consumer-perf-test of one log, "
    "then of the other"
)

POSITIONS = "plans of positions outside Kafka: where the seconds and the memory go, beside a plan of groups in the run"


AGAINST = (
    "another checkout of the product, run in turns from its own .venv, which its scripts/setup makes: {}; the ratio is "
    "ours / the other's"
)


def _checkout(path: str) -> Path:
    """Return the folder of another checkout, absolute, for commands run elsewhere."""
    folder = Path(path).resolve()
    if not (folder / "scripts" / "setup").is_file():
        raise argparse.ArgumentTypeError(f"there is no checkout in {folder}")
    if folder == TREE:
        raise argparse.ArgumentTypeError(f"{folder} is this checkout itself")
    return folder


def main() -> None:  # noqa: PLR0915 - a list of options
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    benches = parser.add_subparsers(dest="bench", metavar="NAME")
    read = benches.add_parser("read", help=READ, description=READ)
    read.add_argument("--records", type=int, default=2_000_000, help="in the topic (default: %(default)s)")
    read.add_argument("--groups", type=int, default=1000, help="consumer groups (default: %(default)s)")
    read.add_argument("--partitions", type=int, default=100, help="per group (default: %(default)s)")
    read.add_argument("--rounds", type=int, default=7, help="measured warm rounds (default: %(default)s)")
    read.add_argument("--one-core", action="store_true", help="ours on one core of the machine, too")
    matched = benches.add_parser("match", help=MATCH, description=MATCH)
    names = [workload.name for workload in match.WORKLOADS]
    matched.add_argument("--windows", type=int, default=100_000, help="at most (default: %(default)s)")
    matched.add_argument("--workload", choices=names, action="append", help="only this one (default: both)")
    matched.add_argument("--rounds", type=int, default=2, help="of plans, with --against (default: %(default)s)")
    applied = benches.add_parser("apply", help=APPLY, description=APPLY)
    applied.add_argument("--groups", type=int, default=10_000, help="consumer groups (default: %(default)s)")
    applied.add_argument("--partitions", type=int, default=10, help="per group (default: %(default)s)")
    applied.add_argument("--rounds", type=int, default=3, help="measured warm rounds (default: %(default)s)")
    applied.add_argument("--tool-groups", type=int, default=2000,
                         help="for kafka-consumer-groups, 0 for none (default: %(default)s)")  # fmt: skip
    planned = benches.add_parser("plan", help=PLAN, description=PLAN)
    planned.add_argument("--rows", type=int, action="append", help="of a plan; several times for several plans")
    planned.add_argument("--rounds", type=int, default=2, help="from plan to rollback (default: %(default)s)")
    held = benches.add_parser("positions", help=POSITIONS, description=POSITIONS)
    held.add_argument("--rows", type=int, action="append", help="of a plan; several times for several plans")
    started = benches.add_parser("start", help=START, description=START)
    started.add_argument("--rounds", type=int, default=3, help="measured rounds (default: %(default)s)")
    listed = benches.add_parser("groups", help=GROUPS, description=GROUPS)
    listed.add_argument("--groups", type=int, default=10_000, help="consumer groups (default: %(default)s)")
    listed.add_argument("--partitions", type=int, default=100, help="per group (default: %(default)s)")
    listed.add_argument("--rounds", type=int, default=3, help="measured rounds (default: %(default)s)")
    newest = benches.add_parser("offsets", help=OFFSETS, description=OFFSETS)
    newest.add_argument("--records", type=int, default=10_000_000, help="in the topic (default: %(default)s)")
    newest.add_argument("--groups", type=int, default=10_000, help="consumer groups (default: %(default)s)")
    newest.add_argument("--partitions", type=int, default=100, help="per group (default: %(default)s)")
    newest.add_argument("--rounds", type=int, default=3, help="measured warm rounds (default: %(default)s)")
    audited = benches.add_parser("audit", help=AUDIT, description=AUDIT)
    audited.add_argument("--records", type=int, action="append", help="a side; several times for several sizes")
    audited.add_argument("--rounds", type=int, default=2, help="measured rounds (default: %(default)s)")
    audited.add_argument("--copy", choices=audit.OTHERS, action="append", help="beside the clean one (default: all)")
    for each, what in (
        (matched, "whole plans, from start to exit, of all commits of each workload"),
        (applied, "whole plan, apply --execute, verify and rollback, from start to exit, of as many groups"),
        (planned, "the same commands"),
        (started, "the same commands"),
    ):
        each.add_argument("--against", type=_checkout, metavar="TREE", help=AGAINST.format(what))
    chosen = parser.parse_args()
    if chosen.bench is None:
        print(f"scripts/bench read    {READ}")
        print(f"scripts/bench match   {MATCH}")
        print(f"scripts/bench apply   {APPLY}")
        print(f"scripts/bench plan    {PLAN}")
        print(f"scripts/bench start   {START}")
        print(f"scripts/bench groups  {GROUPS}")
        print(f"scripts/bench offsets {OFFSETS}")
        print(f"scripts/bench positions {POSITIONS}")
        print(f"scripts/bench audit   {AUDIT}")
        return
    if chosen.bench == "apply":
        apply.measure(chosen.groups, chosen.partitions, chosen.rounds, chosen.tool_groups, chosen.against)
        return
    if chosen.bench == "plan":
        plan.measure(chosen.rows or [300, 10_000, 100_000], chosen.against, chosen.rounds)
        return
    if chosen.bench == "positions":
        positions.measure(chosen.rows or [100_000, 300_000, 1_000_000])
        return
    if chosen.bench == "audit":
        audit.measure(chosen.records or [1_000_000, 3_000_000, 10_000_000], chosen.rounds, chosen.copy or audit.OTHERS)
        return
    if chosen.bench == "start":
        start.measure(chosen.rounds, chosen.against)
        return
    if chosen.bench == "groups":
        groups.measure(chosen.groups, chosen.partitions, chosen.rounds)
        return
    if chosen.bench == "offsets":
        offsets.measure(Size(chosen.records, chosen.groups, chosen.partitions), chosen.rounds)
        return
    if chosen.bench == "match":
        match.measure(chosen.windows, chosen.workload or names, chosen.rounds, chosen.against)
        return
    measure(Size(chosen.records, chosen.groups, chosen.partitions), chosen.rounds, chosen.one_core)


if __name__ == "__main__":
    main()
