"""What our own backends promise beyond the contract that anybody's has to keep: errors that explain themselves."""

from __future__ import annotations

import pytest

from holdfast import HoldfastError, NotFoundError, Storage
from holdfast.storage import (
    SupportsClear,
    SupportsDelete,
    SupportsEntries,
    SupportsInspect,
    SupportsRange,
    SupportsTouch,
)
from holdfast.testing import StorageContract
from holdfast.testing.contract import STRAY_REFERENCES, by_name


class OwnStorageContract(StorageContract):
    async def test_offers_every_optional_verb(self, storage: Storage):
        for protocol in (
            SupportsClear,
            SupportsDelete,
            SupportsEntries,
            SupportsInspect,
            SupportsRange,
            SupportsTouch,
        ):
            assert isinstance(storage, protocol) or protocol in self.lacks

    @pytest.mark.parametrize("reference", **by_name(STRAY_REFERENCES))
    async def test_what_is_not_found_says_which_and_why(self, storage: Storage, reference: str):
        for attempt in (
            storage.retrieve(reference),
            storage.retrieve_range(reference, 0, 1),
            storage.inspect(reference),
        ):
            with pytest.raises(NotFoundError) as caught:
                await attempt
            assert caught.value.reference == reference
            assert caught.value.reason in str(caught.value)
            assert len(str(caught.value)) < 1_000

    async def test_bad_arguments_say_what_is_allowed(self, storage: Storage):
        for attempt, advice in (
            (storage.store("key", "text"), r"content must be bytes, got str; encode it first: text\.encode\(\)"),
            (storage.store("key", bytearray(b"x")), r"got bytearray; make an unchanging copy first: bytes\(content\)"),
            (storage.store("key", {"a": 1}), r"got dict; serialise it first"),
            (storage.store("", b""), "key must not be empty; name the content"),
            (storage.store(7, b""), "key must be a string, got int"),
            (storage.store("key", b"", None), "content_type must be a string, got NoneType"),
            (storage.store("key", b"", "text"), "content_type must be a MIME type such as 'text/plain'"),
            (storage.retrieve(None), "reference must be a string, got NoneType"),
            (storage.retrieve_range("1_1_x.txt", 2, 1), "0 <= start <= end, got start=2, end=1"),
            (storage.retrieve_range("1_1_x.txt", 0, 1.5), "end must be an integer, got float"),
        ):
            with pytest.raises(HoldfastError, match=advice):
                await attempt

    async def test_bad_arguments_of_a_touch_say_what_is_allowed(self, storage: Storage):
        touch = self.touching(storage).touch
        for attempt, advice in (
            (touch("1_1_x.txt", 1_763_236_334_512), "seconds since the epoch, from 0 to .*divide milliseconds by 1000"),
            (touch("1_1_x.txt", "now"), "used_at must be a number of seconds since the epoch, got str"),
            (touch("1_1_x.txt", True), "used_at must be a number of seconds since the epoch, got bool"),
            (touch("1_1_x.txt", 0.0, 7), "content_type must be a string, got int"),
            (touch(None, 0.0), "reference must be a string, got NoneType"),
        ):
            with pytest.raises(HoldfastError, match=advice):
                await attempt

    async def test_tells_its_clock_and_whether_it_notes_uses(self, storage: Storage):
        assert storage.clock() > 0
        assert storage.notes_uses in (True, False)
