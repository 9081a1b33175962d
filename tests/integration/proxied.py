"""A cutover's scene on clusters behind proxies, and the plan of it that is right: made past them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from tests.integration.cli import CommandLine
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.proxy import ProxiedCluster
from tests.seeds import new_seed

PLAN = "cutover.plan"


def replicated_scene(lab: Lab, name: str, groups: int) -> Scene:
    """Plain records and transactions, all copied, and groups that stand anywhere among them."""
    scene = Scene(lab, name, new_seed())
    plain, tx = scene.create("plain", 3), scene.create("tx", 2)
    scene.write([(plain, p) for p in range(3)], 2000)
    scene.write_transactions([(tx, 0), (tx, 1)], 600)
    ends = scene.source_ends()
    for number in range(groups):
        scene.commit({scene.group(f"g{number:02}"): {p: scene.dice.randint(*ends[p]) for p in scene.partitions}})
    scene.wait_replicated()
    lab.mirror.wait_checkpoints([scene.group("g00")], quiet_seconds=1.0)
    return scene


def chosen(scene: Scene) -> tuple[str, ...]:
    """The words that choose the scene's groups."""
    return ("--group", f".*{scene.suffix}")


def rows_from_near(scene: Scene, folder: Path) -> Sequence[dict[str, Any]]:
    """The rows of a plan that is made past the proxies; every one is exact."""
    near = CommandLine.of(scene.lab, folder)
    near.plan(PLAN, *chosen(scene)).expect(0)
    rows: Sequence[dict[str, Any]] = near.document(PLAN)["rows"]
    assert len(rows) == len(scene.places) and {row["grade"] for row in rows} == {"exact"}
    return rows


def commands_from_afar(lab: Lab, folder: Path) -> CommandLine:
    """The product, which reaches both clusters through their proxies only."""
    bootstraps = (cast(ProxiedCluster, cluster).proxied_bootstrap for cluster in (lab.source, lab.target))
    path = folder / "proxied.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lab.options.properties(*bootstraps).items()))
    flow = ("--source", lab.options.source_alias, "--target", lab.options.target_alias)
    return CommandLine(folder, ("--mm2-config", path.name, *flow))
