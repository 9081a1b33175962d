"""What is read of the offsets topic, and written of it."""

from tests.mutants.mutant import Mutant

WIRE, EXPORT = "tests/unit/survey/test_offsets_wire.py", "tests/unit/survey/test_offsets_export.py"

EXPORTING = (
    Mutant(
        "export-over-somebodys-file",
        "No file that is there is overwritten, not even one that appeared meanwhile.",
        "migrate/inventory/new_file.py",
        "        path.hardlink_to(temporary)\n",
        "        temporary.replace(path)\n",
        ("tests/unit/inventory/test_new_file.py",),
    ),
    Mutant(
        "export-half-a-file-under-its-name",
        "A file that could not be written whole leaves nothing behind.",
        "migrate/plan/file.py",
        "        Path(name).unlink(missing_ok=True)\n",
        "        pass\n",
        ("tests/unit/inventory/test_new_file.py",),
    ),
    Mutant(
        "export-takes-a-growing-log-for-an-open-transaction",
        "High watermarks are read before last stable offsets: a log that grows in between has no open transaction.",
        "migrate/survey/offsets_export.py",
        "    watermarks, ranges = admin.high_watermarks(places), admin.log_ranges(places)\n",
        "    ranges, watermarks = admin.log_ranges(places), admin.high_watermarks(places)\n",
        (EXPORT,),
    ),
    Mutant(
        "export-reads-one-partition-for-a-pattern",
        "Only a pattern that can mean one name alone narrows what is read.",
        "migrate/survey/offsets_export.py",
        r'_LITERAL = re.compile(r"[\w-]+")',
        r'_LITERAL = re.compile(r"[\w.-]+")',
        (EXPORT,),
    ),
    Mutant(
        "offsets-of-a-newer-kafka-thrown-away",
        "A commit with tags that are not known is read, and counted apart.",
        "migrate/survey/offsets_wire.py",
        "        if not other_tags:\n            reader.end()\n",
        "        reader.end()\n",
        (WIRE,),
    ),
    Mutant(
        "offsets-with-rests-taken-for-whole",
        "A value with bytes behind its end is of a layout that is not known, and not decoded.",
        "migrate/survey/offsets_wire.py",
        "        if self.at != len(self.data):\n",
        "        if self.at > len(self.data):\n",
        (WIRE,),
    ),
    Mutant(
        "offsets-below-zero-taken-for-offsets",
        "A negative offset is no position of a group.",
        "migrate/survey/offsets_wire.py",
        "    if offset < 0:\n        return Fault.NEGATIVE\n",
        "",
        (WIRE,),
    ),
    Mutant(
        "times-without-a-zone-guessed",
        "A time without its zone is refused: hours of commits would be in, or out, by mistake.",
        "migrate/cli/export.py",
        "    if moment is None or moment.tzinfo is None:\n",
        "    if moment is None:\n",
        ("tests/unit/cli/test_export.py",),
    ),
    Mutant(
        "export-silent-over-open-transactions",
        "Where a transaction holds back the end of what was read, the summary says so.",
        "migrate/show/offsets_export.py",
        "    for partition, end in sorted(pin.open_ends.items()):\n",
        "    for partition, end in ():\n",
        ("tests/unit/show/test_offsets_export.py",),
    ),
)
