"""The commands that stop MM2 and reset its positions, for the way it runs and its version. Pure.

The tool itself never touches MM2. What is not known stands as a word in capitals. Sources: KIP-875 (stop and GET
offsets from Kafka 3.5, PATCH and DELETE from 3.6), KIP-810 (null.marker from 3.2), KIP-1147 (--reader-property from
4.2), Strimzi's guide (`state`, and offsets by annotation).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from migrate.flow import Mm2Home, RuntimeWord
from migrate.model import TopicPartition
from migrate.plan import Header
from migrate.terminal import shell_word

COMMAND = "    "


@dataclass(frozen=True, slots=True)
class Mm2Site:
    """MM2 as far as a plan's header knows it, in MM2's own direction: `source_alias` is what it copies from."""

    source_alias: str
    target_alias: str
    target_bootstrap: str
    known: Mapping[str, str]

    @property
    def home(self) -> Mm2Home:
        """What MM2 runs in."""
        return Mm2Home(self.known.get(RuntimeWord.HOME, Mm2Home.UNKNOWN))

    @property
    def version(self) -> tuple[int, int] | None:
        """Kafka's major and minor version that MM2 is of; None where nobody told."""
        found = re.match(r"(\d+)\.(\d+)", self.known.get(RuntimeWord.VERSION, ""))
        return (int(found[1]), int(found[2])) if found else None

    def names(self, word: RuntimeWord) -> list[str]:
        """Return the connectors of one kind, as the offsets topic's keys and the REST name them."""
        return [name for name in self.known.get(word, "").split(", ") if name]


def site_of(header: Header) -> Mm2Site:
    """Return MM2 of a plan: on a failback its source is what the plan writes."""
    aliases, bootstrap = (header.source_alias, header.target_alias), header.flow.get("target_bootstrap", "")
    if header.failback:
        aliases, bootstrap = aliases[::-1], header.flow.get("source_bootstrap", "")
    return Mm2Site(*aliases, bootstrap or "HOST:PORT", header.flow)


def stopping(site: Mm2Site) -> Iterator[str]:
    """Yield how to stop MM2, so that it neither copies nor sets offsets; commands stand indented."""
    match site.home:
        case Mm2Home.CONNECT:
            yield from _stopping_connect(site)
        case Mm2Home.STRIMZI:
            kind, name, namespace = _resource(site)
            yield (
                f"In {kind} {name}, set state: stopped for the sourceConnector and the checkpointConnector of this "
                "mirror (Strimzi 0.38 and later; before, pause: true); state: running starts them again:"
            )
            yield f"{COMMAND}kubectl{namespace} edit {kind} {name}"
        case Mm2Home.DEDICATED:
            yield "A SIGTERM lets it write its last positions; the same start command takes up from there:"
            yield f"{COMMAND}kill $(pgrep -f org.apache.kafka.connect.mirror.MirrorMaker)"
            flow = f"{site.source_alias}->{site.target_alias}"
            yield f"Without its group sync only: {flow}.sync.group.offsets.enabled = false, and a restart."
        case _:
            yield (
                "Nobody told how MM2 runs. By itself: a SIGTERM to its process. In a Connect worker (plan with "
                "--connect-url for the very commands):"
            )
            yield f"{COMMAND}curl -fsS -X PUT CONNECT-URL/connectors/CONNECTOR/stop"


def _stopping_connect(site: Mm2Site) -> Iterator[str]:
    old = site.version is not None and site.version < (3, 5)
    word = "pause" if old else "stop"
    names = site.names(RuntimeWord.SOURCES) + site.names(RuntimeWord.CHECKPOINTS)
    yield f"By REST; {'pause is what Kafka before 3.5 has' if old else 'resume instead of stop starts it again'}:"
    for name in names or ["CONNECTOR"]:
        yield f"{COMMAND}curl -fsS -X PUT {_url(site, name)}/{word}"


def resetting(site: Mm2Site, partition: TopicPartition) -> Iterator[str]:
    """Yield how to make MM2 copy a source partition again from its start; commands stand indented.

    MM2 has to be stopped meanwhile. Its copies then stand twice on the target.
    """
    by_rest = site.version is None or site.version >= (3, 6)
    match site.home:
        case Mm2Home.CONNECT if by_rest:
            where = {"cluster": site.source_alias, "topic": partition.topic, "partition": partition.partition}
            body = json.dumps({"offsets": [{"partition": where, "offset": None}]}, ensure_ascii=False)
            for name in site.names(RuntimeWord.SOURCES) or ["CONNECTOR"]:
                yield "The connector must be stopped. This partition only, or with DELETE all of the connector's:"
                yield (
                    f"{COMMAND}curl -fsS -X PATCH -H 'Content-Type: application/json' -d {shell_word(body)} "
                    f"{_url(site, name)}/offsets"
                )
                yield f"{COMMAND}curl -fsS -X DELETE {_url(site, name)}/offsets"
        case Mm2Home.STRIMZI if by_rest:
            kind, name, namespace = _resource(site)
            connector = shell_word((site.names(RuntimeWord.SOURCES) or ["CONNECTOR"])[0])
            yield "All of the connector's positions, once it is stopped (Strimzi 0.44 and later):"
            yield (
                f"{COMMAND}kubectl{namespace} annotate {kind} {name} strimzi.io/connector-offsets=reset "
                f"strimzi.io/mirrormaker-connector={connector}"
            )
        case _:
            yield from _tombstone(site, partition)


def _tombstone(site: Mm2Site, partition: TopicPartition) -> Iterator[str]:
    """A null value under the very bytes of the key clears a position (`MirrorUtils`, Connect's JsonConverter)."""
    default = "MirrorSourceConnector" if site.home is Mm2Home.DEDICATED else "CONNECTOR"
    topic = site.known.get(RuntimeWord.OFFSETS_TOPIC) or "OFFSETS-TOPIC"
    where = {"cluster": site.source_alias, "partition": partition.partition, "topic": partition.topic}
    property_word = "--reader-property" if site.version and site.version >= (4, 2) else "--property"
    yield (
        "With MM2 stopped, a null under this key in its offsets topic (kafka-console-producer of Kafka 3.2 or later; "
        f"{'from 4.2 on --property is called --reader-property' if site.version is None else 'a tab parts the two'}):"
    )
    for name in site.names(RuntimeWord.SOURCES) or [default]:
        key = json.dumps([name, where], ensure_ascii=False, separators=(",", ":"))
        yield (
            f"{COMMAND}printf '%s\\tNULL\\n' {shell_word(key)} | kafka-console-producer.sh --bootstrap-server "
            f"{shell_word(site.target_bootstrap)} --topic {shell_word(topic)} {property_word} parse.key=true "
            f"{property_word} null.marker=NULL"
        )


def _url(site: Mm2Site, connector: str) -> str:
    url = site.known.get(RuntimeWord.URL) or "CONNECT-URL"
    return shell_word(f"{url}/connectors/{quote(connector, safe='')}")


def _resource(site: Mm2Site) -> tuple[str, str, str]:
    """The resource's kind and name for kubectl, and the option that names its namespace."""
    namespace, _, name = site.known.get(RuntimeWord.RESOURCE, "").rpartition("/")
    return "kafkamirrormaker2", shell_word(name or "NAME"), f" -n {shell_word(namespace)}" if namespace else ""
