"""`iowhy.watch()` in a real kernel of Jupyter, metrics in the parser of Prometheus, and the package under a type checker."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import iowhy
import nbformat
from nbclient import NotebookClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families

CELLS = [
    """
import os, tempfile, threading, iowhy
file = tempfile.TemporaryFile(buffering=0)
def ingest():
    for _ in range(300):
        file.write(b"a record\\n")
        os.fdatasync(file.fileno())
with iowhy.watch() as w:
    ingest()
w
""",
    "frame = w.record.to_pandas('layers')\nprint(list(frame.id) == [layer.id for layer in w.record.layers], len(frame) > 3)",
    "print([finding.id for finding in w.findings])",
    "with iowhy.watch('--no-calibrate') as w:\n    raise ValueError('of the block')",
    "w.record",
]


class Notebook(unittest.TestCase):
    def test_shows_the_report_and_keeps_the_exceptions_of_the_block(self) -> None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
        with tempfile.TemporaryDirectory() as folder:
            client = NotebookClient(notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": folder}})
            client.execute()
        report, layers, findings, error, record = (cell.outputs[-1] for cell in notebook.cells)
        self.assertIn("\ntier ", report["data"]["text/plain"])
        page = report["data"]["text/html"]
        self.assertTrue(page.startswith('<iframe sandbox="allow-scripts"') and "&lt;svg" in page, page[:300])
        self.assertEqual(layers["text"].split(), ["True", "True"])
        self.assertRegex(findings["text"], "sync-per-write|noisy-neighbour")
        self.assertEqual((error["ename"], error["evalue"]), ("ValueError", "of the block"))
        self.assertIn("<iframe", record["data"]["text/html"])


class Metrics(unittest.TestCase):
    def test_of_every_record_are_read_by_the_parser_of_prometheus(self) -> None:
        points = 0
        for path in Path("crates/iowhy/tests/command/records/1").glob("*.json"):
            command = [iowhy.binary(), "export", path, "--format", "openmetrics"]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            points += sum(len(family.samples) for family in text_string_to_metric_families(text))
        self.assertGreater(points, 500)


class Types(unittest.TestCase):
    def checked(self, code: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "use.py").write_text(code)
            command = [sys.executable, "-m", "mypy", "--strict", "use.py"]
            return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout

    def test_a_type_checker_knows_the_keys(self) -> None:
        use = "import iowhy\nwith iowhy.watch() as w:\n    pass\nfor finding in w.findings:\n    print(finding.{})\n"
        self.assertIn("Success", self.checked(use.format("evidence[0].upper()")))
        self.assertIn('"Finding" has no attribute "evidense"', self.checked(use.format("evidense")))
        narrow = "import iowhy\nrecord = iowhy.load('x')\nif record.kind == 'doctor':\n    print(record.settings)\n"
        self.assertIn("Success", self.checked(narrow))

    def test_the_package_is_well_typed(self) -> None:
        command = [sys.executable, "-m", "mypy", "--strict", "--package", "iowhy"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertIn("Success", ran.stdout, ran.stdout)


if __name__ == "__main__":
    unittest.main()
