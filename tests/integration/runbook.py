"""The commands of RUNBOOK.md, as they are typed there: those of the cutover, and those of its steps for an extra."""

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from migrate.plan.file import stored_fingerprint
from tests.integration.cli import REPOSITORY, Ran, run, run_warm
from tests.integration.scene import Scene
from tests.lab.lab import Lab

RUNBOOK = (REPOSITORY / "RUNBOOK.md").read_text()
STEP = re.compile(r"<!-- here: (?P<here>.*?) -->|^ *```bash(?P<extra>[ a-z_]*)\n(?P<block>.*?)^ *```", re.M | re.S)
EXIT = re.compile(r"\s+# .*?(?:exit (\d)\b.*)?$")
PLAIN = ("billing", "crm", "shipping")


@dataclass(frozen=True)
class Typed:
    """One command: its words, the file that its output goes to, its exit code, and lines that its output has."""

    words: tuple[str, ...]
    into: str
    exit_code: int
    shown: tuple[str, ...]


def steps(extra: str = "") -> Iterator[str | Typed]:
    """Yield what the runbook has people do: what happens outside as text, commands as they are typed.

    With `extra` only the commands of that extra's steps.
    """
    for found in STEP.finditer(RUNBOOK):
        if found["here"] and not extra:
            yield found["here"]
        elif found["block"] and found["extra"].strip() == extra:
            yield from commands(found["block"])


def commands(block: str) -> Iterator[Typed]:
    """Yield the commands of a block; a line that begins with # is shown by the command above it."""
    lines = [line.strip() for line in block.replace("\\\n", " ").splitlines()]
    starts = [i for i, line in enumerate(lines) if not line.startswith("#")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        said = EXIT.search(lines[start])
        words = shlex.split(EXIT.sub("", lines[start]))
        words, into = (words[:-2], words[-1]) if ">" in words else (words, "")
        shown = tuple(line.removeprefix("# ") for line in lines[start + 1 : end])
        yield Typed(tuple(words), into, int(said[1]) if said and said[1] else 0, shown)


def without_numbers(text: str) -> str:
    """Return a line of output with its numbers, and the nouns that go with them, made alike."""
    return re.sub(r"\d[\d,]* (\w+?)s?\b", r"N \1", text)


def set_scene(lab: Lab, name: str) -> Scene:
    """Make the topics and groups of the runbook on A, all of it copied to B and checkpointed."""
    scene = Scene(lab, name, seed=7)
    orders, clicks = scene.create("orders", 2), scene.create("clicks", 1)
    for place in ((orders, 0), (orders, 1), (clicks, 0)):
        scene.write_synced_early([place], 500)
    scene.wait_replicated()
    scene.commit({scene.group("billing"): {(orders, 0): 120, (orders, 1): 340}})
    scene.commit({scene.group("crm"): {(orders, 0): 500, (orders, 1): 77}})
    scene.commit({scene.group("shipping"): {(clicks, 0): 410}})
    lab.mirror.wait_checkpoints([scene.group(name) for name in PLAIN])
    return scene


@dataclass
class Night:
    """The scene, what the runbook's names are called in it, and everything that was run."""

    scene: Scene
    folder: Path
    options: tuple[str, ...] = ()  # given to the commands that choose groups, and name none
    times: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)
    run: Callable[..., Ran] = run_warm

    def type(self, typed: Typed) -> Ran | None:
        """Run a command, and check that it ends as the runbook says and shows what is there."""
        if typed.words[0] == "export":
            self.environment |= dict(word.split("=", 1) for word in typed.words[1:])
            return None
        program, *words = (self.named(word, typed) for word in typed.words)
        assert program == "mm2-migrate", typed
        if words[0] == "plan" and not {"--group", "--groups-file"} & set(words):
            words += ["--group", f".*-{self.scene.suffix}"]  # other tests have groups on these clusters, too
        if words[0] in ("plan", "status"):
            words += ["--settle", "1"]
        ran = self.run(*words, *self.options, folder=self.folder, environment=self.environment)
        self.ran.append(ran)
        ran.expect(typed.exit_code)
        output = without_numbers(ran.stdout)
        for line in typed.shown:
            assert without_numbers(line) in output, f"{typed.words}: {line!r} is not in\n{ran.stdout}"
        if typed.into:
            (self.folder / typed.into).write_text(ran.stdout)
        return ran

    def named(self, word: str, typed: Typed) -> str:
        """Return what a word of the runbook is called here."""
        if word == "FINGERPRINT":
            plan = next(w for w in typed.words if w.endswith(".plan"))
            return stored_fingerprint(self.folder / plan)
        return self.scene.group(word) if word in PLAIN else self.times.get(word, word)

    def of(self, *words: str) -> Ran:
        """The first command that begins with these words."""
        return next(ran for ran in self.ran if ran.command.split()[1 : 1 + len(words)] == list(words))


def night_of(extra: str, scene: Scene, folder: Path, *options: str, **times: str) -> Night:
    """Type the commands of an extra's steps, one after another; `options` are added to each."""
    shutil.copy(scene.lab.mm2_properties, folder / "mm2.properties")
    night = Night(scene, folder, options, times, run=run)
    for step in (*(s for s in steps() if isinstance(s, Typed) and s.words[0] == "export"), *steps(extra)):
        assert isinstance(step, Typed)
        night.type(step)
    return night
