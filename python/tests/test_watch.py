"""`iowhy.watch()` around real blocks: what it counts, what becomes of exceptions, forks and failures, and what an ordinary user
sees. No test asserts a time."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import iowhy
from common import skipped
from iowhy._watch import _until_begun
from loader import Folder, batches

SYNCS = 300


def calls_of(w: iowhy.watch) -> dict[str, int]:
    """How often each system call was made in the block."""
    if w.record.profile.calls is None:
        skipped(next(limit.sentence for limit in w.record.limitations if "not counted" in limit.sentence))
    return {call.name: call.calls for call in w.record.profile.calls.calls}


def assert_named(test: unittest.TestCase, w: iowhy.watch, cause: str) -> None:
    """That the cause is among the findings, unless other work took the machine."""
    ids = [finding.id for finding in w.findings]
    if cause not in ids and "noisy-neighbour" in ids:
        skipped("others use this machine so much that no cause of the program's own is named")
    test.assertIn(cause, ids, str(w))


def sync_each(folder: str, count: int) -> None:
    """Makes each of so many records durable by itself."""
    file = os.open(os.path.join(folder, "records"), os.O_WRONLY | os.O_CREAT, 0o600)
    for _ in range(count):
        os.write(file, b"a record\n")
        os.fdatasync(file)
    os.close(file)


class Block(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="iowhy-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def test_has_every_call_of_the_block_and_no_other(self) -> None:
        sync_each(self.folder, 7)
        with iowhy.watch() as w:
            self.assertIn("before the block ends", str(w))
            sync_each(self.folder, SYNCS)
        sync_each(self.folder, 7)
        self.assertIsNone(w.problem)
        self.assertEqual(w.record.kind, "watched-program")
        self.assertIn(str(os.getpid()), w.record.subject)
        self.assertIn(f"tier {w.record.tier}", str(w))
        self.assertTrue(w._repr_html_().startswith("<iframe sandbox"), w._repr_html_()[:200])
        kept = Path(self.folder, "kept.json")
        w.save(kept)
        self.assertEqual(iowhy.load(kept), w.record)
        counted = calls_of(w)
        self.assertEqual((counted["fdatasync"], counted["write"]), (SYNCS, SYNCS))
        assert_named(self, w, "sync-per-write")

    def test_exceptions_pass_and_the_record_stays(self) -> None:
        for error in (ZeroDivisionError, KeyboardInterrupt, SystemExit):
            with self.assertRaises(error):
                with iowhy.watch("--no-calibrate") as w:
                    raise error
            self.assertGreater(w.record.wall_s, 0)

    def test_a_process_that_the_block_forks_leaves_the_profile_alone(self) -> None:
        with iowhy.watch("--no-calibrate") as w:
            child = os.fork()
            if child == 0:
                w.__exit__(None, None, None)
                os._exit(3)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 3)
        self.assertGreater(w.record.wall_s, 0)

    def test_a_block_that_reaps_all_children_costs_nothing(self) -> None:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGCHLD, before)
        with iowhy.watch("--no-calibrate") as w:
            pass
        self.assertGreater(w.record.wall_s, 0)

    def test_a_rank_of_a_parallel_job_has_a_record_in_any_folder(self) -> None:
        folder = tempfile.mkdtemp(prefix="{host}-{a}", dir=self.folder)
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "4"}), mock.patch("tempfile.tempdir", folder):
            with iowhy.watch("--no-calibrate") as w:
                pass
        self.assertIsNone(w.problem)
        self.assertEqual((w.record.rank.rank, w.record.rank.ranks), (1, 4))
        self.assertEqual(os.listdir(folder), [])

    def test_a_worker_from_before_the_block_is_seen_in_it(self) -> None:
        context = multiprocessing.get_context("fork")
        wanted, done = context.SimpleQueue(), context.SimpleQueue()

        def work() -> None:
            while count := wanted.get():
                sync_each(self.folder, count)
                done.put(count)

        worker = context.Process(target=work)
        worker.start()
        with iowhy.watch("--no-calibrate") as w:
            wanted.put(SYNCS)
            done.get()
        wanted.put(0)
        worker.join()
        counted = calls_of(w)
        self.assertEqual(counted["fdatasync"], SYNCS)

    def test_a_loader_with_worker_processes_is_told_its_cause(self) -> None:
        files = Folder(self.folder, 3000)
        # Several passes: one took 95 ms on a fast machine, too short for shares by samples.
        with iowhy.watch("--no-calibrate") as w:
            for _ in range(5):
                self.assertEqual(sum(map(len, batches(files, workers=2))), 3000)
        counted = calls_of(w)
        self.assertGreaterEqual(counted["openat"], 15000)
        assert_named(self, w, "many-small-files")


class NoRights(unittest.TestCase):
    def stand_in(self, program: str) -> None:
        """Makes it the program of this test."""
        with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as file:
            file.write(f"#!/bin/sh\n{program}\n")
        self.addCleanup(os.unlink, file.name)
        os.chmod(file.name, 0o700)
        patch = mock.patch("iowhy._watch.binary", lambda: file.name)
        patch.start()
        self.addCleanup(patch.stop)

    def failed(self, program: str) -> iowhy.watch:
        """A block beside a program that fails."""
        self.stand_in(program)
        done = False
        with iowhy.watch() as w:
            done = True
        self.assertTrue(done)
        with self.assertRaises(iowhy.Error) as error:
            w.findings
        self.assertTrue(w.problem and w.problem == str(error.exception) == str(w), w.problem)
        return w

    def test_a_refusal_is_passed_on_and_the_block_runs(self) -> None:
        w = self.failed("echo 'error: process <1> may not be profiled' >&2; exit 2")
        self.assertEqual(str(w), "error: process <1> may not be profiled")
        self.assertEqual(w._repr_html_(), "<pre>error: process &lt;1&gt; may not be profiled</pre>")

    def test_a_program_that_dies_or_writes_half_a_record_is_told(self) -> None:
        for dies in ("exit 1", "echo watching >&2; kill -9 $$"):
            self.assertIn("said nothing", str(self.failed(dies)))
        self.assertEqual(str(self.failed("echo 'warning: x' >&2; exit 3")), "warning: x")
        half = 'trap "echo {> \\"$6\\"; exit" INT; echo watching >&2; sleep 9 & wait'
        self.assertIn("cut off", str(self.failed(half)))

    def test_a_program_that_is_not_there_is_told(self) -> None:
        with mock.patch("iowhy._watch.binary", lambda: "/no/such/program"):
            with iowhy.watch() as w:
                pass
        self.assertIn("could not be started", str(w))
        missing = iowhy.Error("there is no program `iowhy`")
        with mock.patch("iowhy._watch.binary", side_effect=missing):
            with iowhy.watch() as w:
                pass
        self.assertEqual(w.problem, str(missing))

    def test_options_that_a_block_cannot_have_are_refused(self) -> None:
        for options in (["--time", "3s"], ["--time=3s"], ["-q"], ["--quiet"], ["--json", "x"], ["--output=x"]):
            with self.assertRaisesRegex(ValueError, f"`{options[0].split('=')[0]}` is no option of a block: .*(profile|watch)"):
                iowhy.watch(*options)

    def test_the_folder_has_any_name(self) -> None:
        folder = tempfile.mkdtemp(prefix="iowhy-{a}")
        self.addCleanup(shutil.rmtree, folder)
        self.stand_in('echo "$@" >&2; exit 2')
        with mock.patch("tempfile.tempdir", folder):
            with iowhy.watch("--no-counts") as w:
                pass
        shown = folder.replace("{", "{{")
        words = f"--color never attach --no-counts {os.getpid()} --json {shown}/iowhy-"
        self.assertTrue(str(w).startswith(words) and str(w).endswith("/run-{host}.json"), str(w))

    def test_the_folder_goes_with_the_block_s_own_process_alone(self) -> None:
        self.stand_in("echo watching >&2")
        w = iowhy.watch().__enter__()
        folder = Path(w._folder)
        child = os.fork()
        if child == 0:
            del w
            os._exit(0 if folder.exists() else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(folder.exists())
        del w
        self.assertFalse(folder.exists())

    def test_a_program_that_cannot_be_signalled_raises_nothing(self) -> None:
        self.stand_in("echo watching >&2")
        with mock.patch.object(subprocess.Popen, "send_signal", side_effect=PermissionError("not yours")):
            with iowhy.watch() as w:
                folder = Path(w._folder)
        self.assertEqual(w.problem, "the profile is lost: not yours")
        self.assertFalse(folder.exists())

    def test_a_descriptor_may_have_any_number(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        end, other = os.pipe()
        os.write(other, b"watching\n")
        with os.fdopen(fcntl.fcntl(end, fcntl.F_DUPFD, 1100), "rb", buffering=0) as stream:
            self.assertEqual(_until_begun(stream), (True, b"watching\n"))
        os.close(end)
        os.close(other)

    def test_an_ordinary_user_sees_what_the_kernel_allows_and_is_told_the_rest(self) -> None:
        code = "import iowhy\nwith iowhy.watch('--no-calibrate') as w: sum(range(10**6))\nprint(w)\nprint(w.record.tier)"
        package = tempfile.mkdtemp(prefix="iowhy-test-")
        self.addCleanup(shutil.rmtree, package)
        shutil.copytree(Path(iowhy.__file__).parent, Path(package, "iowhy"))
        os.chmod(package, 0o755)
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"] if os.geteuid() == 0 else []
        python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": package}
        try:
            subprocess.run([*nobody, python, "-c", "import iowhy"], env=environment, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            skipped("an ordinary user cannot run this Python")
        ran = subprocess.run([*nobody, python, "-c", code], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran)
        tier = ran.stdout.split()[-1]
        self.assertIn(tier, ("none", "stacks", "clock"), ran.stdout)
        self.assertIn("root", ran.stdout)


if __name__ == "__main__":
    unittest.main()
