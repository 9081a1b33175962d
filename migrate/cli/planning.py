"""The `plan` command as it is typed: a plan, or the plans of a model."""

from dataclasses import dataclass
from pathlib import Path

import click

from migrate.cli.options import option
from migrate.cli.plan import PlanOptions
from migrate.cli.plan import plan as plan_alone
from migrate.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class PlanningOptions(PlanOptions):
    """A plan, or what is made instead."""

    model: Path | None = option(
        "Plan every flow of this file (YAML: docs/models.md), one after another; what they have in common is read "
        "once.", metavar="FILE")  # fmt: skip
    out_dir: Path = option(
        "With --model: folder to write the plans to, each under its flow's name.",
        default=Path("plans"), metavar="FOLDER")  # fmt: skip


def plan(options: PlanningOptions) -> int:
    """Read both clusters and MM2's topics, translate every commit, check, and write a plan.

    Changes nothing on any cluster. Exits 3 if the plan has blocks, or if no commit is inside the filters; it is still
    written, for review.
    """
    context = click.get_current_context(silent=True)  # None where Python calls: then nothing was typed
    if options.model is not None:
        from migrate.cli.model import ModelOptions, plan_flows, refuse_beside_model

        if context is not None:
            refuse_beside_model(context)
        return plan_flows(
            ModelOptions(model=options.model, out_dir=options.out_dir, spark=options.spark, log=options.log)
        )
    if context is not None and context.get_parameter_source("out_dir") is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--out-dir is for the plans of a model.", "Give --model FILE, or name one file with --out.")
    return plan_alone(options)
