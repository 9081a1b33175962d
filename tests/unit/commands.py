"""The command line as tests type it, in this process, and the options of two clusters that nobody runs."""

from pathlib import Path

from click.testing import CliRunner, Result

from migrate.cli.main import cli


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, list(words), env=environment or None)


def clusters(tmp_path: Path) -> list[str]:
    (tmp_path / "a.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    (tmp_path / "b.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    return [
        "--source-config", str(tmp_path / "a.properties"), "--target-config", str(tmp_path / "b.properties"),
        "--source", "A", "--target", "B",
    ]  # fmt: skip
