"""An archive of classes: made for one JVM and its options, used only if ours and whole, never with a secret in it."""

import os
from pathlib import Path

import pytest

from migrate.spark import archive
from migrate.spark.archive import KEPT, RECORDING, ClassArchive
from migrate.spark.session_settings import CLASS_PATH, JAVA_OPTIONS

SETTINGS = {JAVA_OPTIONS: "-XX:+UseSerialGC"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MM2_MIGRATE_CACHE", str(tmp_path))
    for name in archive.OPTIONS:
        monkeypatch.delenv(name, raising=False)
    java = tmp_path / "jdk" / "bin" / "java"
    for path in (java, tmp_path / "jdk" / "lib" / "server" / "classes.jsa"):
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(archive, "java_executable", lambda: java)
    monkeypatch.setattr(archive, "java_version", lambda: "17.0.15")
    return tmp_path


def keep(monkeypatch, settings=SETTINGS, content=b"classes", secrets=()):
    monkeypatch.setattr(archive, "_dump", lambda jvm, new_array, path: path.write_bytes(content))
    ClassArchive(settings).keep(None, None, secrets)


def files(cache: Path) -> list[Path]:
    return sorted((cache / "classes").iterdir())


def test_what_was_kept_is_used_by_the_next_jvm_with_the_same_options(cache, monkeypatch):
    assert ClassArchive(SETTINGS).options(recording=True) == RECORDING
    assert ClassArchive(SETTINGS).options(recording=False) == ""
    keep(monkeypatch)
    (kept,) = files(cache)
    for recording in (True, False):
        assert ClassArchive(SETTINGS).options(recording) == f'-XX:SharedArchiveFile="{kept}" -Xshare:auto'
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o777 == 0o700


def test_other_options_jars_or_surroundings_need_another(monkeypatch, tmp_path):
    keep(monkeypatch)
    jar = tmp_path / "connector.jar"
    jar.write_bytes(b"1")
    with_jar = SETTINGS | {CLASS_PATH: str(jar)}
    for settings in ({JAVA_OPTIONS: "-XX:+UseParallelGC"}, with_jar):
        assert ClassArchive(settings).find() is None
    keep(monkeypatch, with_jar)
    assert ClassArchive(with_jar).find() is not None
    jar.write_bytes(b"another version")
    assert ClassArchive(with_jar).find() is None
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    assert ClassArchive(SETTINGS).find() is None


def test_a_file_that_was_changed_opened_to_others_or_is_a_link_is_not_used(cache, monkeypatch, tmp_path):
    keep(monkeypatch)
    (kept,) = files(cache)
    for mode in (0o644, 0o660, 0o602):
        kept.chmod(mode)
        assert ClassArchive(SETTINGS).find() is None
    kept.chmod(0o600)
    assert ClassArchive(SETTINGS).find() == kept
    kept.parent.chmod(0o770)
    assert ClassArchive(SETTINGS).find() is None
    kept.parent.chmod(0o700)
    kept.write_bytes(b"Classes")
    assert ClassArchive(SETTINGS).find() is None
    kept.write_bytes(b"classes")
    elsewhere = tmp_path / "elsewhere"
    kept.rename(elsewhere)
    kept.symlink_to(elsewhere)
    assert ClassArchive(SETTINGS).find() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_used(cache, monkeypatch):
    keep(monkeypatch)
    (kept,) = files(cache)
    os.chown(kept, 54321, -1)
    assert ClassArchive(SETTINGS).find() is None


OWN = [
    "-XX:SharedArchiveFile=mine.jsa", "-Xshare:off", "-XX:ArchiveClassesAtExit=mine.jsa", "-XX:-UseSharedSpaces",
    "-javaagent:otel.jar", "-agentlib:jdwp=server=y", "-agentpath:/x.so", "-Djava.system.class.loader=Mine", "-Dx='",
]  # fmt: skip


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("where", ["JAVA_TOOL_OPTIONS", JAVA_OPTIONS])
def test_a_jvm_with_an_agent_or_an_archive_of_the_users_own_is_left_alone(monkeypatch, own, where):
    settings = dict(SETTINGS)
    if where == JAVA_OPTIONS:
        settings[where] += f" {own}"
    else:
        monkeypatch.setenv(where, f"-Dx=y {own}")
    keep(monkeypatch, settings)
    assert ClassArchive(settings).options(recording=True) == ""


def test_a_jvm_without_an_archive_of_its_own_classes_can_have_none(cache):
    (cache / "jdk" / "lib" / "server" / "classes.jsa").unlink()
    assert ClassArchive(SETTINGS).options(recording=True) == ""


@pytest.mark.parametrize(("version", "options"), [("17.0.15", RECORDING), ("25", RECORDING), ("26.0.1", "")])
def test_a_java_that_may_not_know_the_options_gets_none(monkeypatch, version, options):
    monkeypatch.setattr(archive, "java_version", lambda: version)
    assert ClassArchive(SETTINGS).options(recording=True) == options


def test_nothing_is_kept_with_a_secret_in_it_and_that_is_remembered_for_a_day(cache, monkeypatch):
    keep(monkeypatch, content=b"classes hush-hush classes", secrets=("other-one", "hush-hush"))
    (refusal,) = files(cache)
    assert refusal.suffix == ".refused" and ClassArchive(SETTINGS).options(recording=True) == ""
    a_day_ago = refusal.stat().st_mtime - 24 * 3600 - 1
    os.utime(refusal, (a_day_ago, a_day_ago))
    assert ClassArchive(SETTINGS).options(recording=True) == RECORDING


def test_what_any_file_holds_is_no_secret_to_look_for(cache, monkeypatch):
    keep(monkeypatch, content=b"true classes", secrets=("true", ""))
    assert [path.suffix for path in files(cache)] == [".jsa"]


def test_without_room_nothing_is_kept_and_nothing_half_written_is_left(cache, monkeypatch):
    def full(jvm, new_array, path):
        path.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(archive, "_dump", full)
    with pytest.raises(OSError, match="No space"):
        ClassArchive(SETTINGS).keep(None, None, ())
    assert files(cache) == []


def test_what_a_killed_jvm_was_writing_goes_with_the_next(cache, monkeypatch):
    keep(monkeypatch)
    old, new = (cache / "classes" / name for name in ("x.1.part.temp", "x.2.part"))
    for path in (old, new):
        path.touch()
    os.utime(old, (1000, 1000))
    keep(monkeypatch)
    assert not old.exists() and new.exists()


def test_only_the_newest_few_are_kept(cache, monkeypatch):
    for number in range(KEPT + 2):
        keep(monkeypatch, {JAVA_OPTIONS: f"-Dn={number}"})
        for age, path in enumerate(sorted(files(cache), key=lambda p: p.stat().st_mtime_ns)):
            os.utime(path, (1000 + age, 1000 + age))
    assert len(files(cache)) == KEPT
    assert ClassArchive({JAVA_OPTIONS: "-Dn=0"}).find() is None
    assert ClassArchive({JAVA_OPTIONS: f"-Dn={KEPT + 1}"}).find() is not None


def test_one_that_is_in_use_is_not_thrown_away_for_its_age(cache, monkeypatch):
    for number in range(KEPT):
        keep(monkeypatch, {JAVA_OPTIONS: f"-Dn={number}"})
        (made,) = (path for path in files(cache) if path.stat().st_mtime > 10_000)
        os.utime(made, (1000 + number, 1000 + number))
    assert ClassArchive({JAVA_OPTIONS: "-Dn=0"}).find() is not None
    keep(monkeypatch, {JAVA_OPTIONS: "-Dn=new"})
    assert ClassArchive({JAVA_OPTIONS: "-Dn=0"}).find() is not None
    assert ClassArchive({JAVA_OPTIONS: "-Dn=1"}).find() is None


def test_the_names_of_loaded_classes_are_read_from_the_jvms_own_tree():
    tree = "java.lang.Object/null\n|--a.b.C/0x00007f9b600918a0\n|  |--a.b.C$D/0x00007f9b600918a0\n\n"
    hidden = "|--a.b.C$$Lambda$7/0x00007f9b183c20f8/0x00007f9b600918a0\n"
    assert archive._loaded(tree + hidden) == ["a.b.C", "a.b.C$$Lambda$7", "a.b.C$D", "java.lang.Object"]
