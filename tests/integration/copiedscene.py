"""Scenes behind a replicator that is not MirrorMaker: killed now and then, with names of its own."""

from dataclasses import dataclass
from pathlib import Path

from tests.integration.cli import CommandLine
from tests.integration.clusters import READ_SECONDS, commits_on, create_topic
from tests.integration.scene import Scene
from tests.lab.copier import Copier, Ways

# A regex, as it stands in the file of --topic-map: what the scene's own topics are called on the target.
NAMES = r"regex:(.*-copied-[0-9a-f]{6}),eu.\1" + "\n"
DROPPED_KEY = "k7"


@dataclass(repr=False)
class CopiedScene(Scene):
    """A scene whose copies are made by a `Copier`."""

    def copy(self, topic: str) -> str:
        return f"eu.{topic}"

    def copier(self, folder: Path, ways: Ways) -> Copier:
        """Create the copies' topics, and a replicator that is not started yet."""
        names = {topic: self.copy(topic) for topic in self.topics}
        for topic, copy in names.items():
            create_topic(self.lab.target_bootstrap, copy, self.topics[topic])
        return Copier(folder, self.lab.source_bootstrap, self.lab.target_bootstrap, self.group("copier"), names, ways)

    def kill_amid(self, copier: Copier) -> None:
        """Let the replicator copy a part, and kill it -9 before it has committed all of that."""
        copier.die_amid(self.dice.randint(0, 2), READ_SECONDS)
        self.kills += 1

    def is_copied(self, copier: Copier) -> bool:
        """True if it has committed behind the last record that readers of each partition are shown."""
        places = commits_on(self.lab.source_bootstrap, [copier.group]).get(copier.group, {})
        last = {p: max((w.offset for w in ws if w.committed), default=-1) for p, ws in self.written.items()}
        return all(places.get(place, 0) > offset for place, offset in last.items())

    def finish(self, copier: Copier) -> None:
        """Let it copy the rest, and stop it."""
        copier.start()
        copier.wait_ready(lambda: self.is_copied(copier), READ_SECONDS, f"all of {self} was copied")
        copier.kill()

    def commit_anywhere(self, groups: int) -> None:
        """Commit for every group on every partition: at either end, or anywhere."""
        ends = self.source_ends()
        for number in range(groups):
            places = {
                place: self.dice.choice((low, high, *(self.dice.randint(low, high) for _ in range(6))))
                for place, (low, high) in ends.items()
            }
            self.commit({self.group(f"g{number:02}"): places})

    def commands(self, folder: Path) -> CommandLine:
        """The command line, with nothing of MM2's."""
        (folder / "names.csv").write_text(NAMES)
        lab = self.lab
        return CommandLine(
            folder,
            (
                "--source-config", str(lab.source_properties), "--target-config", str(lab.target_properties),
                "--source", "A", "--target", "B", "--replicator", "any", "--topic-map", "names.csv",
            ),
            warm=True,
        )  # fmt: skip
