"""A Kafka Streams application is known by its assignor, its internal topics, or the metadata of its commits."""

import struct
from base64 import b64encode

import pytest

from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from migrate.survey.streams import InternalTopic, application, applications_of, internal_topics, is_metadata

VERSION_1 = b64encode(struct.pack(">bq", 1, 1_700_000_000_000)).decode()
VERSION_2 = b64encode(struct.pack(">bq", 2, -1) + struct.pack(">i", 0)).decode()
TOPICS = ("app-store-changelog", "app-by-key-repartition", "app-notes", "apple-store-changelog", "other-changelog")


def test_internal_topics_carry_the_applications_name_and_their_copies_another_one_under_the_default_policy():
    policy = ReplicationPolicy(PolicyKind.DEFAULT, "A", "B")
    of = applications_of(TOPICS, {"app", "ap", "apple"})
    assert of.keys() == {"app", "apple"}
    found = internal_topics(of["app"], {"A.app-store-changelog": 1}, policy)
    assert found == (
        InternalTopic("app-by-key-repartition", "A.app-by-key-repartition", False),
        InternalTopic("app-store-changelog", "A.app-store-changelog", True),
    )


def test_a_topic_is_of_the_application_with_the_longest_name():
    assert applications_of(["a-b-x-changelog"], {"a", "a-b"}) == {"a-b": ["a-b-x-changelog"]}
    assert applications_of(["a-b-x-changelog"], {"a"}) == {"a": ["a-b-x-changelog"]}


@pytest.mark.parametrize("text", [VERSION_1, VERSION_2])
def test_the_metadata_of_streams_is_recognised(text):
    assert is_metadata(text)


@pytest.mark.parametrize(
    "text",
    ["", "note", "AQ==", "deployed-by-hand", VERSION_1[:-4], "B" + VERSION_1[1:], b64encode(b"\1" * 9).decode(), "é"],
)
def test_other_metadata_is_not(text):
    assert not is_metadata(text)


def test_each_sign_is_enough_and_none_is_none():
    topic = InternalTopic("app-x-changelog", "A.app-x-changelog", False)
    assert application("stream", (), ()).signs == ("assignor stream",)
    assert application("", (), (topic,)).signs == ("internal topics",)
    assert application("", ("plain", VERSION_2), ()).signs == ("commit metadata",)
    assert application("range", ("plain",), ()) is None
