"""The installed package: the program, records from files, and their tables. Each skip is printed, as `cargo xtask test` counts them."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import iowhy
from common import skipped
from iowhy import records
from iowhy._object import Object

GOLDEN = sorted(Path("crates/iowhy/tests/command/records/1").glob("*.json"))


MODULE = (sys.executable, "-m", "iowhy")


def run(*arguments: str, code: int = 0, program: tuple[str, ...] = MODULE) -> str:
    ran = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran
    return ran.stdout


class Program(unittest.TestCase):
    def test_is_the_one_of_the_package(self) -> None:
        self.assertEqual(run("--version"), f"iowhy {iowhy.__version__}\n")
        self.assertTrue(iowhy.binary().startswith(sys.prefix), iowhy.binary())
        script = Path(sys.executable).with_name("iowhy")
        self.assertEqual(subprocess.check_output([script, "--version"], text=True), run("--version"))

    def test_exit_codes_and_signals_are_those_of_the_program(self) -> None:
        run("no-such-place", "and-another", code=2)
        # Python ignores SIGPIPE (13) and SIGXFSZ (25); a program that iowhy runs must not.
        told = run("--quiet", "--tier", "none", "--", "grep", "SigIgn", "/proc/self/status")
        self.assertEqual(int(told.split()[1], 16) & (1 << 12 | 1 << 24), 0, told)


class Load(unittest.TestCase):
    def refused(self, text: bytes) -> str:
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            with self.assertRaises(iowhy.Error) as refusal:
                iowhy.load(file.name)
            self.assertIn(file.name, str(refusal.exception))
            return str(refusal.exception)

    def test_every_record_has_the_class_of_its_kind_and_no_key_without_one(self) -> None:
        self.assertGreater(len(GOLDEN), 10)
        for path in GOLDEN:
            record = iowhy.load(path)
            self.assertIs(type(record), records.KINDS[record.kind], path)
            self.assert_known(record, str(path))

    def test_no_key_hides_a_method(self) -> None:
        for kind in records.KINDS.values():
            self.assertFalse(kind.__annotations__.keys() & {"tables", "to_rows", "to_pandas"}, kind)

    def assert_known(self, value: Any, where: str) -> None:
        if isinstance(value, list):
            for item in value:
                self.assert_known(item, where)
        if isinstance(value, Object) and type(value) is not Object:
            for key, item in vars(value).items():
                self.assertTrue("-" in key or key in type(value).__annotations__, f"{where}: {type(value)} has {key}")
                self.assert_known(item, f"{where}.{key}")

    def test_an_optional_key_is_none_and_a_wrong_one_an_error(self) -> None:
        record = iowhy.load("crates/iowhy/tests/command/records/1/watched.json")
        self.assertIsInstance(record, records.WatchedProgramResult)
        assert isinstance(record, records.WatchedProgramResult)
        self.assertIsInstance(record.findings[0], records.Finding)
        del record.profile.pattern
        self.assertIsNone(record.profile.pattern)
        with self.assertRaises(AttributeError):
            record.no_such_key

    def test_a_cut_off_record_is_told_wherever_it_ends(self) -> None:
        whole = min((path.read_bytes() for path in GOLDEN), key=len).strip()
        for length in range(1, len(whole)):
            self.assertIn("cut off", self.refused(whole[:length]), whole[:length])

    def test_other_files_are_told_apart(self) -> None:
        for text, words in [
            (b"{'a': 1}", "is no JSON"),
            (b"\xff\xfe{}", "is no JSON"),
            (b'{"a": 1}', "no record of iowhy"),
            (b"[1]", "no record of iowhy"),
            (b'{"kind": "trace", "schema": 99, "iowhy": "9.1"}', "Read it with iowhy 9.1"),
            (b'{"kind": "dream", "schema": 1}', "`dream`"),
            (b'{"kind": ["trace"], "schema": 1}', "does not know"),
            (b"[" * 100_000, "is no JSON record"),
            (b"[1, ", "is no JSON record"),
            (b"# A list of files\n", "is no JSON record"),
            (b"", "is no JSON record"),
        ]:
            told = self.refused(text)
            self.assertIn(words, told)
            self.assertNotIn("cut off", told)
        with self.assertRaises(OSError):
            iowhy.load("no/such/file")


class Tables(unittest.TestCase):
    def test_are_those_of_export(self) -> None:
        compared = 0
        for path in GOLDEN:
            record = iowhy.load(path)
            for table in record.tables():
                text = run("export", str(path), "--table", table, program=(iowhy.binary(),))
                exported = list(csv.DictReader(io.StringIO(text, newline="")))
                rows = record.to_rows(table)
                self.assertEqual(len(rows), len(exported), f"{path} {table}")
                for ours, theirs in zip(rows, exported):
                    self.assertLessEqual(ours.keys(), theirs.keys(), f"{path} {table}")
                    for key, text in theirs.items():
                        self.assertTrue(same(ours.get(key), text), f"{path} {table} {key}: {ours.get(key)} {text}")
                compared += len(rows)
        self.assertGreater(compared, 100)

    def test_one_that_is_not_there_is_refused_with_those_that_are(self) -> None:
        record = iowhy.load("crates/iowhy/tests/command/records/1/watched.json")
        with self.assertRaisesRegex(iowhy.Error, "no table `cells`.*findings"):
            record.to_rows("cells")

    def test_are_data_frames(self) -> None:
        try:
            import pandas
        except ImportError:
            skipped("pandas is not installed in this environment")
        record = iowhy.load("crates/iowhy/tests/command/records/1/watched.json")
        assert isinstance(record, records.WatchedProgramResult)
        frame = record.to_pandas("layers")
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame["id"]), [layer.id for layer in record.layers])
        self.assertAlmostEqual(frame["wall_s"].sum(), record.wall_s)


def same(value: Any, text: str) -> bool:
    """Whether a value is what `export` writes. The last digit of a number may differ between readers of JSON."""
    if isinstance(value, float):
        return math.isclose(value, float(text), rel_tol=1e-14)
    if isinstance(value, str):
        return value == text.removeprefix("'").encode("latin-1", "backslashreplace").decode("unicode_escape")
    return text == ("" if value is None else json.dumps(value))


if __name__ == "__main__":
    unittest.main()
