"""boto3 clients for many threads and for forked processes. Needs boto3, so it is imported with the first S3Storage."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, InvalidConfigError
from botocore.utils import determine_content_length

__all__ = ["Clients", "make_client"]

_SMALL_BODY = 1_000_000


def make_client(
    session: boto3.Session | None,
    config: Config | None,
    region_name: str | None,
    endpoint_url: str | None,
    *,
    connections: int,
) -> Any:
    """Build a boto3 client. What *config* says wins; else boto3 waits less and tries fewer times than by default."""
    defaults = Config(
        max_pool_connections=connections,
        connect_timeout=10,
        retries={"mode": "standard", "total_max_attempts": 3},
    )
    agent = " ".join(filter(None, (getattr(config, "user_agent_extra", None), "holdfast")))
    merged = defaults.merge(config or Config()).merge(Config(user_agent_extra=agent))
    session = session or boto3.Session(region_name=region_name)
    client = _client_of(session, merged, endpoint_url)
    client.meta.events.register_last("before-call.s3", _send_small_bodies_at_once)
    return client


def _client_of(session: boto3.Session, config: Config, endpoint_url: str | None) -> Any:
    """Build it, and let an endpoint that is no URL be told like all that is wrong with a configuration."""
    try:
        return session.client("s3", config=config, endpoint_url=endpoint_url)
    except BotoCoreError:
        raise
    except ValueError as error:
        raise InvalidConfigError(error_msg=str(error)) from error


def _send_small_bodies_at_once(params: dict[str, Any], **_: Any) -> None:
    """Do without botocore's ``Expect: 100-continue``, a round trip that only pays when a large body is refused."""
    if (determine_content_length(params["body"]) or 0) <= _SMALL_BODY:
        params["headers"].pop("Expect", None)


class _ForkSafeLock:
    """A lock that a forked process gets anew, in case a thread of its parent held it."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.Lock()


_MAKING_CLIENTS = _ForkSafeLock()


class Clients:
    """One client for each process: after a fork, a client's connections belong to the parent."""

    def __init__(self, make_client: Callable[[], Any]) -> None:
        self._make_client = make_client
        self._made: tuple[int, Any] | None = None

    def of_this_process(self) -> Any:
        """Return the client, made at the first call."""
        with _MAKING_CLIENTS.lock:
            if self._made is None or self._made[0] != os.getpid():
                self._made = (os.getpid(), self._make_client())
            return self._made[1]
