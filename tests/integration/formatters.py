"""The judge of what `__consumer_offsets` holds: Kafka's own formatters under its own console consumer."""

import json
import subprocess
from collections import defaultdict
from typing import Any

from tests.lab.cluster import Cluster
from tests.lab.process import java_command

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTERS = "org.apache.kafka.tools.consumer."
QUIET_MS = 6000
Told = dict[str, list[Any]]
"""By key, as JSON: the values in the order of the log, None for a tombstone."""


def told(cluster: Cluster, formatter: str) -> Told:
    """What one of Kafka's formatters prints of every record that it knows, read_committed."""
    words = java_command(
        cluster.jars, CONSOLE_CONSUMER, "--bootstrap-server", cluster.bootstrap, "--topic", "__consumer_offsets",
        "--from-beginning", "--isolation-level", "read_committed", "--timeout-ms", str(QUIET_MS),
        "--formatter", FORMATTERS + formatter,
    )  # fmt: skip
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    found: Told = defaultdict(list)
    # One document after the other, with nothing in between.
    decoder, at = json.JSONDecoder(), 0
    while at < len(ran.stdout.rstrip()):
        record, at = decoder.raw_decode(ran.stdout, at)
        key, value = record["key"], record["value"]
        # Up to 3.9 the type is called version, and numbers of versions are texts.
        named = {"type": int(key.get("type", key.get("version"))), "data": key["data"]}
        told_value = value and value | {"version": int(value["version"])}
        found[json.dumps(named, sort_keys=True)].append(told_value)
    assert found, ran.stderr
    return dict(found)
