"""Contract tests and fakes, for this project's tests and for yours. Needs ``pip install 'holdfast[testing]'``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from holdfast.extras import lazily

if TYPE_CHECKING:
    from holdfast.testing.contract import StorageContract
    from holdfast.testing.fakes import FakeClock, FlakyStorage, SlowStorage
    from holdfast.testing.machine import storage_machine
    from holdfast.testing.policies import PolicyContract

__all__ = ["FakeClock", "FlakyStorage", "PolicyContract", "SlowStorage", "StorageContract", "storage_machine"]

if "pytest" in sys.modules:
    # So that a failing contract test shows what it compared, in anybody's project.
    sys.modules["pytest"].register_assert_rewrite(
        "holdfast.testing.contract", "holdfast.testing.machine", "holdfast.testing.policies"
    )

lazily(
    globals(),
    {
        "FakeClock": "holdfast.testing.fakes",
        "FlakyStorage": "holdfast.testing.fakes",
        "PolicyContract": "holdfast.testing.policies",
        "SlowStorage": "holdfast.testing.fakes",
        "StorageContract": "holdfast.testing.contract",
        "storage_machine": "holdfast.testing.machine",
    },
    extra="testing",
)
