"""The commands that stop MM2 and reset its positions, for the way it runs and its version. Pure.

The tool itself never touches MM2. What is not known is a word in capitals. Sources: KIP-875 (stop and GET
offsets from Kafka 3.5, PATCH and DELETE from 3.6), KIP-810 (null.marker from 3.2), KIP-1147 (--reader-property from
4.2), Strimzi's guide (`state`, and offsets by annotation).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from urllib.parse import quote

from migrate.mm2.flow import Mm2Home, RuntimeWord
from migrate.mm2.settings import kafka_version
from migrate.model import Side, TopicPartition
from migrate.text import name, safe, shell_word

COMMAND = "    "
KIND = "kafkamirrormaker2"
STOP_SINCE, RESET_SINCE = (3, 5), (3, 6)


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
    def connectors_source_alias(self) -> str:
        """What MM2's connectors call their source."""
        return self.known.get(RuntimeWord.SOURCE_ALIAS, self.source_alias)

    @property
    def version(self) -> tuple[int, int] | None:
        """Kafka's major and minor version of MM2; None where unknown, and for vendors' own version numbers."""
        return kafka_version(self.version_text)

    @property
    def version_text(self) -> str:
        """The version as the worker or the resource has it, "" where unknown."""
        return self.known.get(RuntimeWord.VERSION, "")

    @property
    def version_sentence(self) -> str:
        """How a sentence names the version: with what it means for Kafka where that is not plain."""
        if self.version is None:
            if self.version_text:
                return f"Which Kafka {name(self.version_text)} is, is not known here"
            return "Kafka's version is not known"
        kafka = "Kafka {}.{}".format(*self.version)
        plain = self.version_text.startswith(kafka.removeprefix("Kafka "))
        return f"It is {kafka}" if plain else f"{self.version_text} is {kafka}"

    def names(self, word: RuntimeWord) -> list[str]:
        """Return what a word lists; connectors are named as in the keys of an offsets topic, and by the REST."""
        return [name for name in self.known.get(word, "").split(", ") if name]


def stopping(site: Mm2Site) -> Iterator[str]:
    """Yield how to stop MM2, so that it neither copies nor sets offsets; commands are indented."""
    match site.home:
        case Mm2Home.CONNECT:
            yield from _stopping_connect(site)
        case Mm2Home.STRIMZI:
            yield (
                "In the KafkaMirrorMaker2 resource, set state: stopped for this mirror's sourceConnector and "
                "checkpointConnector (Strimzi 0.38 and later; before, pause: true); state: running starts them again:"
            )
            for resource, namespace in _resources(site):
                yield f"{COMMAND}kubectl{namespace} edit {KIND} {resource}"
        case Mm2Home.DEDICATED:
            flow = safe(f"{site.source_alias}->{site.target_alias}")
            yield (
                "A SIGTERM lets it write its last positions; the same start command takes up from there. List every "
                f"MM2 of its host with its properties file, and end the one whose file has {flow}, by its process id:"
            )
            yield f"{COMMAND}pgrep -fa org.apache.kafka.connect.mirror.MirrorMaker"
            yield f"{COMMAND}kill PID"
            yield f"Without its group sync only: {flow}.sync.group.offsets.enabled = false, and a restart."
        case _:
            yield (
                "How MM2 runs is not known. By itself: a SIGTERM to its process. In a Connect worker (plan with "
                "--connect-url for the very commands; Kafka before 3.5 has pause and no stop):"
            )
            yield f"{COMMAND}curl -fsS -X PUT CONNECT-URL/connectors/CONNECTOR/stop"


def _stopping_connect(site: Mm2Site) -> Iterator[str]:
    version, by_rest = site.version, f"By REST. {site.version_sentence}"
    if version is None:
        said = {
            "stop": f"{by_rest}; from 3.5 on there is stop, and resume instead of it starts it again:",
            "pause": "Where the worker answers HTTP 404 to that, it is Kafka before 3.5, which has pause:",
        }
    elif version >= STOP_SINCE:
        said = {"stop": f"{by_rest}; resume instead of stop starts it again:"}
    else:
        said = {"pause": f"{by_rest}; pause is what Kafka before 3.5 has:"}
    for verb, sentence in said.items():
        yield sentence
        for connector in site.names(RuntimeWord.SOURCES) + site.names(RuntimeWord.CHECKPOINTS) or ["CONNECTOR"]:
            yield f"{COMMAND}curl -fsS -X PUT {_url(site, connector)}/{verb}"


def resetting(site: Mm2Site, partition: TopicPartition) -> Iterator[str]:
    """Yield how to make MM2 copy a source partition again from its start; commands are indented.

    MM2 has to be stopped meanwhile; its copies are then twice on the target. An unknown version gets both ways.
    """
    by_rest = site.home in (Mm2Home.CONNECT, Mm2Home.STRIMZI) and (site.version is None or site.version >= RESET_SINCE)
    if by_rest:
        if site.version is None:
            yield f"{site.version_sentence}. Kafka from 3.6 on:"
        yield from (_by_rest(site, partition) if site.home is Mm2Home.CONNECT else _by_annotation(site))
        if site.version is None:
            yield "Kafka before 3.6:"
    if not by_rest or site.version is None:
        yield from _tombstone(site, partition)
    topic = site.known.get("offset_syncs_topic") or "The offset-syncs topic"
    at_target = site.known.get("offset_syncs_location") == Side.TARGET
    alias = site.target_alias if at_target else site.source_alias
    yield (
        f"{name(topic)} on {name(alias)} must stay, whatever you read elsewhere: deleting it resets nothing, and "
        "throws away what offsets are translated with."
    )


def _by_rest(site: Mm2Site, partition: TopicPartition) -> Iterator[str]:
    where = {"cluster": site.connectors_source_alias, "topic": partition.topic, "partition": partition.partition}
    body = json.dumps({"offsets": [{"partition": where, "offset": None}]}, ensure_ascii=False)
    for connector in site.names(RuntimeWord.SOURCES) or ["CONNECTOR"]:
        yield "The connector must be stopped. This partition only, or with DELETE all of the connector's:"
        yield (
            f"{COMMAND}curl -fsS -X PATCH -H 'Content-Type: application/json' -d {shell_word(body)} "
            f"{_url(site, connector)}/offsets"
        )
        yield f"{COMMAND}curl -fsS -X DELETE {_url(site, connector)}/offsets"


def _by_annotation(site: Mm2Site) -> Iterator[str]:
    connector = shell_word((site.names(RuntimeWord.SOURCES) or ["CONNECTOR"])[0])
    resources = list(_resources(site))
    only = "; only of the resource that copies this topic" if len(resources) > 1 else ""
    yield f"All of the connector's positions, once it is stopped (Strimzi 0.44 and later){only}:"
    for resource, namespace in resources:
        yield (
            f"{COMMAND}kubectl{namespace} annotate {KIND} {resource} strimzi.io/connector-offsets=reset "
            f"strimzi.io/mirrormaker-connector={connector}"
        )


def _tombstone(site: Mm2Site, partition: TopicPartition) -> Iterator[str]:
    """A null value under the very bytes of the key clears a position (`MirrorUtils`, Connect's JsonConverter)."""
    default = "MirrorSourceConnector" if site.home is Mm2Home.DEDICATED else "CONNECTOR"
    where = {"cluster": site.connectors_source_alias, "partition": partition.partition, "topic": partition.topic}
    property_word = "--reader-property" if site.version and site.version >= (4, 2) else "--property"
    yield (
        "With MM2 stopped, a null under this key in its offsets topic (kafka-console-producer of Kafka 3.2 or later; "
        f"{'from 4.2 on --property is called --reader-property' if site.version is None else 'a tab parts the two'}):"
    )
    connectors = site.names(RuntimeWord.SOURCES) or [default]
    topics = site.names(RuntimeWord.OFFSETS_TOPIC) or ["OFFSETS-TOPIC"]
    for connector, topic in product(connectors, topics):
        key = json.dumps([connector, where], ensure_ascii=False, separators=(",", ":"))
        yield (
            f"{COMMAND}printf '%s\\tNULL\\n' {shell_word(key)} | kafka-console-producer.sh --bootstrap-server "
            f"{shell_word(site.target_bootstrap)} --topic {shell_word(topic)} {property_word} parse.key=true "
            f"{property_word} null.marker=NULL"
        )
    if site.home is Mm2Home.CONNECT:
        yield "Tasks that were paused and not stopped go on where they were: start them anew (Kafka 3.0 and later):"
        for connector in connectors:
            yield f"{COMMAND}curl -fsS -X POST {_url(site, connector, '/restart?includeTasks=true')}"


def _url(site: Mm2Site, connector: str, then: str = "") -> str:
    url = site.known.get(RuntimeWord.URL) or "CONNECT-URL"
    return shell_word(f"{url}/connectors/{quote(connector, safe='')}{then}")


def _resources(site: Mm2Site) -> Iterator[tuple[str, str]]:
    """Yield each resource's name for kubectl, and the option that names its namespace."""
    for named in site.names(RuntimeWord.RESOURCE) or ["NAME"]:
        namespace, _, resource = named.rpartition("/")
        yield shell_word(resource), f" -n {shell_word(namespace)}" if namespace else ""
