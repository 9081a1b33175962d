"""A Kafka Streams application is known by its assignor, its internal topics, or the metadata of its commits."""

import struct
from base64 import b64encode

from migrate.survey.streams import applications_of, is_metadata, signs_of

VERSION_1 = b64encode(struct.pack(">bq", 1, 1_700_000_000_000)).decode()
VERSION_2 = b64encode(struct.pack(">bq", 2, -1) + struct.pack(">i", 0)).decode()
TOPICS = ("app-store-changelog", "app-by-key-repartition", "app-notes", "apple-store-changelog", "other-changelog")


def test_internal_topics_carry_the_applications_name():
    of_app, of_apple = ["app-store-changelog", "app-by-key-repartition"], ["apple-store-changelog"]
    assert applications_of(TOPICS, {"app", "ap", "apple"}) == {"app": of_app, "apple": of_apple}
    assert applications_of(["a-b-x-changelog"], {"a", "a-b"}) == {"a-b": ["a-b-x-changelog"]}, "the longest name"


def test_the_metadata_of_streams_is_recognised_and_no_other():
    assert is_metadata(VERSION_1) and is_metadata(VERSION_2)
    other = ("", "note", "AQ==", "deployed-by-hand", VERSION_1[:-4], "B" + VERSION_1[1:], "AQEBAQEBAQEB", "é")
    assert not [text for text in other if is_metadata(text)]


def test_each_sign_is_enough_and_none_is_none():
    assert signs_of("stream", (), ()) == ("assignor stream",)
    assert signs_of("", (), ("app-x-changelog",)) == ("internal topics",)
    assert signs_of("", ("plain", VERSION_2), ()) == ("commit metadata",)
    assert signs_of("range", ("plain",), ()) == ()
