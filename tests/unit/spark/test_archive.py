"""An archive of classes: made for one JVM and its options, used only if ours and whole."""

import os
from pathlib import Path

import pytest

from migrate.spark import archive
from migrate.spark.archive import KEPT, RECORDING, USING, ClassArchive
from migrate.spark.session_settings import CLASS_PATH, JAVA_OPTIONS

SETTINGS = {JAVA_OPTIONS: "-XX:+UseSerialGC"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MM2_MIGRATE_CACHE", str(tmp_path))
    for name in archive.OPTIONS:
        monkeypatch.delenv(name, raising=False)
    java = tmp_path / "java"
    java.touch()
    monkeypatch.setattr(archive, "java_executable", lambda: java)
    monkeypatch.setattr(archive, "java_version", lambda: "17.0.15")
    return tmp_path


def asked(settings=SETTINGS, recording=True):
    """What a JVM with these settings is asked to do with an archive: the option's name, "" for nothing."""
    return ClassArchive(settings).options(recording).partition("=")[0]


def keep(settings=SETTINGS, content=b"classes") -> Path:
    """Write the archive, as a JVM does."""
    assert asked(settings) == RECORDING
    made = ClassArchive(settings).path
    made.write_bytes(content)
    made.chmod(0o444)
    return made


def test_what_was_kept_is_used_by_the_next_jvm_with_the_same_options():
    assert asked(recording=False) == ""
    kept = keep()
    for recording in (True, False):
        using = f'{USING}="{kept}" -XX:+VerifySharedSpaces -Xshare:auto'
        assert ClassArchive(SETTINGS).options(recording) == using
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_other_options_jars_or_surroundings_need_another(monkeypatch, tmp_path):
    keep()
    jar = tmp_path / "connector.jar"
    jar.write_bytes(b"1")
    with_jar = SETTINGS | {CLASS_PATH: str(jar)}
    assert asked({JAVA_OPTIONS: "-XX:+UseParallelGC"}) == RECORDING
    keep(with_jar)
    assert asked(with_jar) == USING
    jar.write_bytes(b"another version")
    assert asked(with_jar) == RECORDING
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    assert asked() == RECORDING


def test_a_file_that_is_open_to_others_or_a_link_is_not_used(tmp_path):
    kept = keep()
    for mode in (0o464, 0o660, 0o602):
        kept.chmod(mode)
        assert asked() == ""
    kept.chmod(0o444)
    assert asked() == USING
    kept.parent.chmod(0o770)
    assert asked() == ""
    kept.parent.chmod(0o700)
    elsewhere = tmp_path / "elsewhere"
    kept.rename(elsewhere)
    kept.symlink_to(elsewhere)
    assert asked() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_used():
    os.chown(keep(), 54321, -1)
    assert asked() == ""


@pytest.mark.parametrize("own", [
    "-XX:SharedArchiveFile=mine.jsa", "-Xshare:off", "-XX:ArchiveClassesAtExit=mine.jsa", "-XX:-UseSharedSpaces",
    "-javaagent:otel.jar", "-agentlib:jdwp=server=y", "-agentpath:/x.so", "-Djava.system.class.loader=Mine",
])  # fmt: skip
def test_a_jvm_with_an_agent_or_an_archive_of_the_users_own_is_left_alone(monkeypatch, own):
    assert asked({JAVA_OPTIONS: f"{SETTINGS[JAVA_OPTIONS]} {own}"}) == ""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dx=y {own}")
    assert asked() == ""


def test_one_that_is_being_written_or_could_not_be_is_not_used_and_for_a_day_not_tried_again():
    half = keep(content=bytes(8))
    assert asked() == ""
    a_day_ago = half.stat().st_mtime - 24 * 3600 - 1
    os.utime(half, (a_day_ago, a_day_ago))
    assert asked() == RECORDING
    ClassArchive(SETTINGS).refuse()
    assert asked() == ""
    ClassArchive(SETTINGS).remove()
    assert asked() == RECORDING


def test_only_those_used_last_are_kept():
    made = [keep({JAVA_OPTIONS: f"-Dn={number}"}) for number in range(KEPT)]
    for age, path in enumerate(made):
        os.utime(path, (1000 + age, 1000 + age))
    assert asked({JAVA_OPTIONS: "-Dn=0"}) == USING
    newest = keep({JAVA_OPTIONS: "-Dn=new"})
    assert set(newest.parent.iterdir()) == {made[0], *made[2:], newest}
