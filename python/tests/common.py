"""What the tests share."""

from __future__ import annotations

import unittest
from typing import NoReturn


def skipped(reason: str) -> NoReturn:
    """Skips a test visibly: `xtask/skips.toml` lists the reasons that are allowed."""
    print(f"skipped: {reason}", flush=True)
    raise unittest.SkipTest(reason)
