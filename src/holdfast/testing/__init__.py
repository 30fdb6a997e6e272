"""Contract tests, fakes, and what providers refuse, for this project's tests and for yours.

Needs ``pip install 'holdfast[testing]'``; the scripted strands model needs ``pip install 'holdfast[strands]'``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from holdfast.extras import lazily

if TYPE_CHECKING:
    from holdfast.testing.contract import StorageContract
    from holdfast.testing.dialects import DialectContract
    from holdfast.testing.fakes import FakeClock, FlakyStorage, SlowStorage
    from holdfast.testing.machine import storage_machine
    from holdfast.testing.policies import PolicyContract
    from holdfast.testing.providers import anthropic_problems, converse_problems, openai_problems
    from holdfast.testing.refusals import IllegalRequestError
    from holdfast.testing.scripted_client import ScriptedClient
    from holdfast.testing.scripts import Call, Request
    from holdfast.testing.strands_model import ScriptedModel

__all__ = [
    "Call",
    "DialectContract",
    "FakeClock",
    "FlakyStorage",
    "IllegalRequestError",
    "PolicyContract",
    "Request",
    "ScriptedClient",
    "ScriptedModel",
    "SlowStorage",
    "StorageContract",
    "anthropic_problems",
    "converse_problems",
    "openai_problems",
    "storage_machine",
]

_MODULES = {
    "contract": ("StorageContract",),
    "dialects": ("DialectContract",),
    "fakes": ("FakeClock", "FlakyStorage", "SlowStorage"),
    "machine": ("storage_machine",),
    "policies": ("PolicyContract",),
    "providers": ("anthropic_problems", "converse_problems", "openai_problems"),
    "refusals": ("IllegalRequestError",),
    "scripted_client": ("ScriptedClient",),
    "scripts": ("Call", "Request"),
    "strands_model": ("ScriptedModel",),
}

if "pytest" in sys.modules:
    # So that a failing contract test shows what it compared, in anybody's project.
    for module in ("contract", "dialects", "machine", "policies"):
        sys.modules["pytest"].register_assert_rewrite(f"holdfast.testing.{module}")

lazily(
    globals(),
    {name: f"holdfast.testing.{module}" for module, names in _MODULES.items() for name in names},
    extra="testing",
)
