from __future__ import annotations

import pytest

from holdfast.testing import StorageContract, storage_machine


class TestContract(StorageContract):
    @pytest.fixture
    def storage(self, open_s3):
        return open_s3()
