"""`python -m scripts.demonstration`: run the story; exit 0 only if no record was lost."""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from confluent_kafka import KafkaException

from scripts.demonstration.stage import DemoError, Stage
from scripts.demonstration.story import hand_over, tell
from tests.lab.jars import DEFAULT_VERSION
from tests.lab.waiting import LabError


def leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def complain(text: str) -> None:
    sys.stdout.flush()
    print(f"demo: {text}", file=sys.stderr)


def ended(by: SystemExit | KeyboardInterrupt) -> int:
    """Return the exit code of a demo that a signal has ended, once everything is taken down."""
    if isinstance(by, SystemExit):
        return int(by.code or 0)
    complain("interrupted; everything that it started is stopped.")
    return 128 + signal.SIGINT


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo", description="A whole cutover on this machine.")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave plans, journals and the report there")
    parser.add_argument(
        "--hands-on", type=Path, metavar="FOLDER", help="only set the scene; the cutover is yours, from that folder"
    )
    parser.add_argument(
        "--kafka", default=DEFAULT_VERSION, metavar="VERSION", help=f"of the brokers  [default: {DEFAULT_VERSION}]"
    )
    chosen = parser.parse_args()
    # As an exception, so that the lab is taken down on the way out.
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
    try:
        stage = Stage(chosen.kafka)
        return tell(stage, chosen.keep) if chosen.hands_on is None else hand_over(stage, chosen.hands_on)
    except (SystemExit, KeyboardInterrupt) as end:
        return ended(end)
    except SystemError as error:
        # What a signal's exception becomes that is raised inside a call of librdkafka's Python client.
        if isinstance(error.__cause__, SystemExit | KeyboardInterrupt):
            return ended(error.__cause__)
        raise
    except BrokenPipeError:
        sys.stdout = None  # or Python complains again when it flushes at exit
        return 0
    except (DemoError, LabError) as error:
        complain(str(error))
    except KafkaException as error:
        complain(f"one of the demo's own clients failed: {error.args[0]}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
