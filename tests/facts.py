"""What a flow says, whoever told it: for comparing mm2.properties, a Connect worker and a Strimzi resource."""

from dataclasses import replace
from typing import Any

from migrate.cli.options import ClusterOptions
from migrate.mm2.flow import Flow, Mm2Home


def options(**given: Any) -> ClusterOptions:
    """Cluster options of the flow A -> B, with what is given."""
    nothing = dict.fromkeys(ClusterOptions.__dataclass_fields__)
    return ClusterOptions(**(nothing | {"source": "A", "target": "B"} | given))


def facts(flow: Flow) -> Flow:
    """All that a flow says but where it was told, and how MM2 runs there."""
    runtime = replace(
        flow.runtime, home=Mm2Home.UNKNOWN, version="", url="", resource="", offsets_topic="", source_connectors=(),
        checkpoint_connectors=(), converters={},
    )  # fmt: skip
    ends = {"source": replace(flow.source, origin=""), "target": replace(flow.target, origin="")}
    return replace(flow, runtime=runtime, **ends)  # type: ignore[arg-type]
