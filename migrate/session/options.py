"""What clusters are reached and read with."""

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class SparkOptions:
    """Where Spark runs; None as `master`: where the session that is there says, or here. `spark_conf` is KEY=VALUE.

    What the command line says of them is their metadata.
    """

    TITLE: ClassVar = "Spark"
    master: str | None = field(
        default=None,
        metadata={"help": "Spark master, if no session has one.  [default: local[*]]", "metavar": "URL"},
    )
    spark_conf: tuple[str, ...] = field(
        default=(), metadata={"help": "A Spark setting; repeatable.", "metavar": "KEY=VALUE", "multiple": True}
    )


@dataclass(frozen=True)
class SessionOptions:
    """What clusters are reached and read with; none of it decides what becomes of an offset.

    Where `no_match` holds no records are compared, and where `by_timestamp` does timestamps alone place commits.
    With `keeps_spark` its session is there until all is left, for what reads by it itself.
    """

    request_timeout: float
    spark: SparkOptions = SparkOptions()
    concurrency: int = 100
    no_match: bool = False
    by_timestamp: bool = False
    keeps_spark: bool = False
