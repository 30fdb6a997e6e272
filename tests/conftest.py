"""Fixtures for all tests. The blocking detector is on for every one of them.

HOLDFAST_EXAMPLES=fewer has properties tried on a fifth of the examples, where a test does not ask for a number itself.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

from holdfast import S3Storage
from holdfast.testing.seaweed import S3Server, seaweedfs

pytest.register_assert_rewrite("own_contract")

# Without a deadline: how long an example takes depends on what else the machine does.
settings.register_profile("all", deadline=None)
settings.register_profile("fewer", deadline=None, max_examples=20)
settings.load_profile(os.environ.get("HOLDFAST_EXAMPLES") or "all")


@pytest.fixture(autouse=True)
def fails_if_holdfast_blocks_the_event_loop() -> Iterator[None]:
    with blockbuster_ctx("holdfast"):
        yield


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweedfs(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture(scope="session")
def bucket(s3_server: S3Server) -> str:
    s3_server.create_bucket("holdfast")
    return "holdfast"


@pytest.fixture(scope="session")
def boto_session(s3_server: S3Server) -> Any:
    """One for all tests: making a client from a used session is ten times faster."""
    return s3_server.session()


@pytest.fixture
def client(s3_server: S3Server, boto_session: Any) -> Iterator[Any]:
    """Looks at the real server without holdfast."""
    with closing(boto_session.client("s3", endpoint_url=s3_server.endpoint_url)) as client:
        yield client


@pytest.fixture
def open_s3(s3_server: S3Server, bucket: str, boto_session: Any) -> Callable[..., S3Storage]:
    """Opens storages on the real server, all with one prefix that no other test has."""
    return partial(
        S3Storage,
        bucket=bucket,
        prefix=f"test-{uuid.uuid4().hex}",
        boto_session=boto_session,
        endpoint_url=s3_server.endpoint_url,
    )
