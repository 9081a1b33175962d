"""Plans made by hand for a target cluster alone, so that applying can be tried without MM2 and without Spark."""

from collections.abc import Mapping
from pathlib import Path

from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from tests.builders import make_plan, make_row
from tests.integration.clusters import admin, topic_id

ALIAS = "A"


def made_plan(
    bootstrap: str,
    topic: str,
    offsets: Mapping[str, Mapping[int, tuple[int, int | None] | tuple[int, int | None, str]]],
    created_at_ms: int,
    metadata: str = "",
) -> Plan:
    """Plan groups' offsets by partition of one source topic; another time makes another fingerprint.

    `offsets` are the one to set, the one that stands there (None for none), and that one's metadata. `metadata` is
    set with every offset.
    """
    copy = f"{ALIAS}.{topic}"
    client = admin(bootstrap)
    described = client.describe_cluster().result(30)
    id_of_copy = topic_id(bootstrap, copy)
    assert id_of_copy is not None
    return make_plan(
        # The source is down, and the target's logs are empty.
        (
            make_row(
                group, topic, p, target_offset=offset, target_prior=prior, target_prior_metadata="".join(stood),
                source_log_start=None, source_log_end=None, target_log_start=0, target_log_end=0,
                target_metadata=metadata,
            )
            for group, places in offsets.items() for p, (offset, prior, *stood) in places.items()
        ),
        source_down=True, source_cluster_id="", target_cluster_id=described.cluster_id,
        target_topic_ids={copy: id_of_copy}, created_at_ms=created_at_ms,
    )  # fmt: skip


def options_for(folder: Path, bootstrap: str) -> tuple[str, ...]:
    """Where the clusters are, for the command line. The source is down: nobody asks it."""
    target, source = folder / "target.properties", folder / "source.properties"
    target.write_text(f"bootstrap.servers={bootstrap}\n")
    source.write_text("bootstrap.servers=127.0.0.1:1\n")
    names = ("--source", ALIAS, "--target", "B")
    return ("--source-config", str(source), "--target-config", str(target), *names)


def saved(plan: Plan, path: Path) -> Path:
    write_plan(plan, path)
    return path
