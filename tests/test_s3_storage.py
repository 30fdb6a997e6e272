from __future__ import annotations

import asyncio
import http.server
import subprocess
import sys
import textwrap
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import ClassVar

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import settings
from own_contract import OwnStorageContract

from holdfast import HoldfastError, NotFoundError, S3Storage, StorageError
from holdfast.errors import StorageAccessError
from holdfast.testing import FakeClock, storage_machine


class TestContract(OwnStorageContract):
    @pytest.fixture
    def storage(self, open_s3) -> S3Storage:
        return open_s3()


def test_against_a_dictionary(open_s3):
    machine = storage_machine(open_s3, survives_reopening=True)
    machine.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
    machine.TestCase().runTest()


class TestReferences:
    async def test_they_are_s3_uris_under_the_prefix(self, open_s3, bucket, client):
        prefix = f"agents-{uuid.uuid4().hex}"
        reference = await open_s3(prefix=prefix, clock=FakeClock(now=1700000000.0)).store("tooluse_1", b"content")
        assert reference == f"s3://{bucket}/{prefix}/1700000000000_1_tooluse_1"
        stored = client.get_object(Bucket=bucket, Key=f"{prefix}/1700000000000_1_tooluse_1")
        assert stored["ContentType"] == "text/plain"

    async def test_a_slash_at_the_end_of_the_prefix_changes_nothing(self, open_s3):
        prefix = f"agents-{uuid.uuid4().hex}"
        for written, read in ((prefix, f"{prefix}/"), (f"{prefix}/", prefix), (f"/{prefix}/", prefix)):
            reference = await open_s3(prefix=written).store("key", b"content")
            assert "//" not in reference.removeprefix("s3://")
            assert await open_s3(prefix=read).retrieve(reference) == (b"content", "text/plain")

    async def test_without_a_prefix_keys_are_bare(self, open_s3, bucket):
        storage = open_s3(prefix="")
        reference = await storage.store("key", b"content")
        assert reference.startswith(f"s3://{bucket}/1")
        await storage.delete(reference)

    async def test_raw_keys_lead_there_too(self, open_s3, bucket):
        storage = open_s3()
        reference = await storage.store("key", b"content")
        assert await storage.retrieve(reference.removeprefix(f"s3://{bucket}/")) == (b"content", "text/plain")

    async def test_other_buckets_and_prefixes_are_out_of_reach(self, open_s3, client):
        client.create_bucket(Bucket=(other_bucket := f"other-{uuid.uuid4().hex}"))
        storage = open_s3()
        for reference in (
            await open_s3(prefix="elsewhere").store("key", b"secret"),
            await open_s3(bucket=other_bucket).store("key", b"secret"),
        ):
            with pytest.raises(NotFoundError, match=r"another bucket|outside"):
                await storage.retrieve(reference)
            await storage.delete(reference)

    async def test_no_spelling_leads_out_of_the_prefix(self, open_s3, bucket):
        prefix = f"agents-{uuid.uuid4().hex}"
        secret = await open_s3(prefix=f"{prefix}-secret").store("key", b"secret")
        name = secret.rpartition("/")[2]
        storage = open_s3(prefix=prefix)
        for key in (
            f"{prefix}/../{prefix}-secret/{name}",
            f"{prefix}//{name}",
            f"{prefix}-secret/{name}",
            name,
        ):
            for reference in (key, f"s3://{bucket}/{key}", f"s3://{bucket}//{key}", f"S3://{bucket}/{key}"):
                with pytest.raises(NotFoundError):
                    await storage.retrieve(reference)
                await storage.delete(reference)
        assert await open_s3(prefix=f"{prefix}-secret").retrieve(secret) == (b"secret", "text/plain")

    async def test_objects_of_others_are_neither_read_nor_listed_nor_cleared(self, open_s3, bucket, client):
        prefix = f"agents-{uuid.uuid4().hex}"
        for key in (f"{prefix}/report.pdf", f"{prefix}/deeper/1_1_key"):
            client.put_object(Bucket=bucket, Key=key, Body=b"mine")
        storage = open_s3(prefix=prefix)
        await storage.store("key", b"content")
        with pytest.raises(NotFoundError):
            await storage.retrieve(f"{prefix}/report.pdf")
        assert len([entry async for entry in storage.entries()]) == 1
        await storage.clear()
        left = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/")["Contents"]
        assert [item["Key"] for item in left] == [f"{prefix}/deeper/1_1_key", f"{prefix}/report.pdf"]

    @pytest.mark.parametrize("prefix", ["a//b", "../a", "a/./b"])
    def test_a_prefix_is_a_plain_path(self, prefix):
        with pytest.raises(ValueError, match="prefix must be a path without empty"):
            S3Storage("bucket", prefix)

    @pytest.mark.parametrize("bucket", ["", "a/b", "a b", "s3://bucket", None])
    def test_a_bucket_needs_a_bare_name(self, bucket):
        with pytest.raises(ValueError, match="bucket must be the bare name"):
            S3Storage(bucket)

    def test_an_endpoint_needs_a_scheme(self):
        with pytest.raises(ValueError, match="endpoint_url must start with"):
            S3Storage("bucket", endpoint_url="127.0.0.1:9000")


class TestUploads:
    async def test_never_overwrite(self, open_s3):
        clock = FakeClock()
        storages = [open_s3(clock=clock) for _ in range(4)]
        contents = [str(number).encode() for number in range(20)]
        references = await asyncio.gather(*(storages[i % 4].store("key", c) for i, c in enumerate(contents)))
        assert len(set(references)) == 20
        assert [(await storages[0].retrieve(reference))[0] for reference in references] == contents

    async def test_an_upload_whose_answer_was_lost_is_not_made_twice(self, open_s3, s3_server, bucket):
        with losing_the_first_answer_to_a_put(s3_server.port) as port:
            storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}")
            reference = await storage.store("key", b"content")
        storage = open_s3()
        assert [entry.reference async for entry in storage.entries()] == [reference]
        assert await storage.retrieve(reference) == (b"content", "text/plain")

    @pytest.mark.extended
    async def test_more_entries_than_a_page_are_listed_and_cleared(self, open_s3):
        storage = open_s3()
        for _ in range(11):
            await asyncio.gather(*(storage.store("key", b"") for _ in range(100)))
        assert len([entry async for entry in storage.entries()]) == 1_100
        await storage.clear()
        assert [entry async for entry in storage.entries()] == []

    async def test_ten_megabytes(self, open_s3):
        content = bytes(range(256)) * 40_000
        storage = open_s3()
        reference = await storage.store("key", content, "application/octet-stream")
        assert await storage.retrieve(reference) == (content, "application/octet-stream")
        part = await storage.retrieve_range(reference, 9_000_000, 9_000_100)
        assert (part.content, part.total_size) == (content[9_000_000:9_000_100], len(content))


@contextmanager
def losing_the_first_answer_to_a_put(target_port: int) -> Iterator[int]:
    """A proxy that passes requests on, but closes the connection instead of giving the first answer to a PUT."""
    import http.client

    lost = []

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def relay(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with closing(http.client.HTTPConnection("127.0.0.1", target_port)) as connection:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() != "expect":
                        connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                content = answer.read()
            if self.command == "PUT" and not lost:
                lost.append(self.path)
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_POST = relay  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    with serving(Proxy) as port:
        yield port
    assert lost


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


class Ailing(http.server.BaseHTTPRequestHandler):
    """Answers 503, as S3 does when it wants less to do."""

    def refuse(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = refuse  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


NO_RETRIES = Config(retries={"total_max_attempts": 1})


class TestFaults:
    async def test_credentials_that_are_refused(self, open_s3, s3_server):
        kept = await open_s3().store("key", b"content")
        session = boto3.Session(s3_server.access_key, "wrong", region_name="us-east-1")
        storage = open_s3(boto_session=session)
        for operation in (storage.store("key", b"content"), storage.retrieve(kept), storage.clear()):
            with pytest.raises(ClientError, match="check the access key, the secret key") as caught:
                await operation
            assert isinstance(caught.value, StorageError)
            assert caught.value.response["Error"]["Code"] == "SignatureDoesNotMatch"
        assert await open_s3().retrieve(kept) == (b"content", "text/plain")
        assert len([entry async for entry in open_s3().entries()]) == 1

    async def test_a_bucket_that_does_not_exist(self, open_s3):
        storage = open_s3(bucket="nowhere", prefix="")
        for operation in (storage.store("key", b"content"), storage.retrieve("1_1_key")):
            with pytest.raises(ClientError, match="create the bucket, or check its name") as caught:
                await operation
            assert isinstance(caught.value, HoldfastError)

    async def test_an_endpoint_that_is_down(self, open_s3):
        storage = open_s3(prefix="", endpoint_url="http://127.0.0.1:9", boto_client_config=NO_RETRIES)
        for operation in (storage.store("key", b"content"), storage.retrieve("1_1_key")):
            with pytest.raises(StorageAccessError, match="check that the endpoint is up") as caught:
                await operation
            assert isinstance(caught.value, OSError)

    async def test_an_endpoint_that_answers_503(self, open_s3):
        with serving(Ailing) as port:
            storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}", boto_client_config=NO_RETRIES)
            with pytest.raises(ClientError, match="try again later") as caught:
                await storage.store("key", b"content")
        assert isinstance(caught.value, StorageError)

    async def test_no_credentials_at_all(self, monkeypatch, tmp_path):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        with pytest.raises(StorageAccessError, match="set AWS_ACCESS_KEY_ID"):
            await S3Storage("bucket", endpoint_url="http://127.0.0.1:9").store("key", b"content")

    async def test_an_answer_broken_off_is_no_content(self, open_s3):
        class Liar(Ailing):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"short")

        with serving(Liar) as port:
            storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}", boto_client_config=NO_RETRIES, prefix="")
            with pytest.raises(StorageAccessError):
                await storage.retrieve("1_1_key")


@pytest.mark.parametrize(("start", "end"), [(0, 4), (3, 5), (3, 99), (99, 100)])
async def test_a_server_that_answers_a_range_with_the_whole_is_understood(open_s3, start, end):
    class Generous(Ailing):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"0123456789")

    with serving(Generous) as port:
        storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}", boto_client_config=NO_RETRIES, prefix="")
        part = await storage.retrieve_range("1_1_key", start, end)
    assert (part.content, part.total_size) == (b"0123456789"[start:end], 10)


def test_the_users_client_configuration_wins():
    from holdfast.storage.s3_client import make_client

    config = Config(max_pool_connections=3, user_agent_extra="mine", connect_timeout=1)
    with closing(make_client(None, config, "eu-west-1", None, connections=32)) as client:
        assert client.meta.config.max_pool_connections == 3
        assert client.meta.config.connect_timeout == 1
        assert client.meta.config.user_agent_extra == "mine holdfast"
        assert client.meta.region_name == "eu-west-1"


async def test_uses_are_remembered_while_the_storage_lives(open_s3):
    clock = FakeClock(now=1_000.0)
    storage = open_s3(clock=clock)
    reference = await storage.store("key", b"content")
    clock.advance(5)
    await storage.retrieve(reference)
    (entry,) = [entry async for entry in storage.entries()]
    assert (entry.stored_at, entry.last_used) == (1_000.0, 1_005.0)


class TestInspecting:
    async def test_a_raw_key_leads_to_the_reference_that_store_gave(self, open_s3, bucket):
        storage = open_s3()
        reference = await storage.store("key", b"content")
        assert (await storage.inspect(reference.removeprefix(f"s3://{bucket}/"))).reference == reference

    async def test_it_finds_nothing_for_the_same_reasons_as_retrieve(self, open_s3):
        storage = open_s3(prefix="agents")
        for reference in ("agents/1_1_nothing", "s3://elsewhere/agents/1_1_x", "other/1_1_x", "agents/report.pdf", ""):
            reasons = set()
            for ask in (storage.retrieve, storage.inspect):
                with pytest.raises(NotFoundError) as caught:
                    await ask(reference)
                reasons.add(str(caught.value))
            assert len(reasons) == 1

    async def test_uses_that_this_storage_remembers_are_told(self, open_s3):
        clock = FakeClock(now=1_000.0)
        storage = open_s3(clock=clock)
        reference = await storage.store("key", b"content")
        clock.advance(5)
        await storage.retrieve(reference)
        clock.advance(5)
        assert (await storage.inspect(reference)).last_used == 1_005.0
        assert (await open_s3().inspect(reference)).last_used == 1_000.0

    @pytest.mark.parametrize(
        "nonsense", ["nan", "inf", "-5", "1e9", " 7", "", "soon", "9" * 13, "1_000", "0x7", "5000000000.0000000000000"]
    )
    async def test_a_time_that_is_none_is_not_believed(self, open_s3, bucket, client, nonsense):
        storage = open_s3(clock=FakeClock(now=1_000.0))
        reference = await storage.store("key", b"content")
        key = reference.removeprefix(f"s3://{bucket}/")
        client.put_object(Bucket=bucket, Key=key, Body=b"content", Metadata={"holdfast-used": nonsense})
        assert (await open_s3().inspect(reference)).last_used == 1_000.0


class TestTouching:
    @pytest.fixture
    def session(self, s3_server) -> boto3.Session:
        """One whose events are this test's own."""
        return s3_server.session()

    async def test_a_restart_sees_the_last_use_and_the_content_type(self, open_s3):
        reference = await open_s3(clock=FakeClock(now=5_000.0)).store("a/ü", b"content")
        await open_s3().touch(reference, 5_060.5, "text/plain; turn=3")
        entry = await open_s3().inspect(reference)
        assert (entry.stored_at, entry.last_used) == (5_000.0, 5_060.5)
        assert (entry.key, entry.content_type, entry.size) == ("a/ü", "text/plain; turn=3", 7)
        assert [entry] == [listed async for listed in open_s3().entries()]
        assert await open_s3().retrieve(reference) == (b"content", "text/plain; turn=3")

    @pytest.mark.parametrize("size", [0, 1, 100_000, 10_000_000])
    async def test_the_content_is_kept_whatever_its_size(self, open_s3, size):
        content = (bytes(range(256)) * (size // 256 + 1))[:size]
        storage = open_s3()
        reference = await storage.store("key", content)
        for number in range(3):
            await storage.touch(reference, 5_000_000_000.0 + number, f"text/x-{number}")
        assert await storage.retrieve(reference) == (content, "text/x-2")
        part = await storage.retrieve_range(reference, size // 2, size)
        assert (part.content, part.total_size) == (content[size // 2 :], size)

    async def test_what_else_is_known_of_an_object_is_kept(self, open_s3, bucket, client):
        reference = await open_s3().store("odd/key", b"content")
        key = reference.removeprefix(f"s3://{bucket}/")
        kept = {
            "CacheControl": "max-age=60",
            "ContentDisposition": "inline",
            "ContentLanguage": "en",
            "StorageClass": "STANDARD_IA",
        }
        metadata = client.head_object(Bucket=bucket, Key=key)["Metadata"]
        client.put_object(Bucket=bucket, Key=key, Body=b"content", Metadata=metadata, ContentType="text/x-odd", **kept)
        await open_s3().touch(reference, 5_000_000_000.0)
        after = client.head_object(Bucket=bucket, Key=key)
        assert {name: after[name] for name in kept} == kept
        assert after["Metadata"] == {**metadata, "holdfast-used": "5000000000.000000"}
        assert after["ContentType"] == "text/x-odd"

    async def test_nothing_is_copied_when_nothing_changes(self, open_s3, session):
        copies = []
        session.events.register("before-call.s3.CopyObject", lambda **_: copies.append("copy"))
        storage = open_s3(boto_session=session)
        reference = await storage.store("key", b"content")
        await storage.touch(reference, 5_000_000_000.0, "text/x-odd")
        assert len(copies) == 1
        for used_at, content_type in ((5_000_000_000.0, "text/x-odd"), (0.0, None), (4_000_000_000.0, "text/x-odd")):
            await storage.touch(reference, used_at, content_type)
        assert len(copies) == 1

    async def test_an_object_replaced_meanwhile_is_not_overwritten(self, open_s3, session, bucket, client):
        copies = []

        def replace_it(**_: object) -> None:
            copies.append("copy")
            if len(copies) == 1:
                client.put_object(Bucket=bucket, Key=key, Body=b"newer", ContentType="text/x-newer")

        session.events.register("before-call.s3.CopyObject", replace_it)
        storage = open_s3(boto_session=session)
        reference = await storage.store("key", b"content")
        key = reference.removeprefix(f"s3://{bucket}/")
        await storage.touch(reference, 5_000_000_000.0)
        assert len(copies) == 2
        assert await storage.retrieve(reference) == (b"newer", "text/x-newer")
        assert (await open_s3().inspect(reference)).last_used == 5_000_000_000.0

    async def test_an_object_deleted_meanwhile_stays_deleted(self, open_s3, session, bucket, client):
        session.events.register(
            "before-call.s3.CopyObject", lambda **_: client.delete_object(Bucket=bucket, Key=key) and None
        )
        storage = open_s3(boto_session=session)
        reference = await storage.store("key", b"content")
        key = reference.removeprefix(f"s3://{bucket}/")
        await storage.touch(reference, 5_000_000_000.0, "text/x-odd")
        with pytest.raises(NotFoundError):
            await storage.inspect(reference)

    async def test_touching_what_the_same_storage_deletes_brings_nothing_back(self, open_s3):
        storage = open_s3()
        references = await asyncio.gather(*(storage.store("key", b"x" * 100_000) for _ in range(30)))
        touches = [storage.touch(reference, 5_000_000_000.0, "text/x-odd") for reference in references]
        await asyncio.gather(*touches, *map(storage.delete, references[:15]), storage.clear())
        assert [entry async for entry in storage.entries()] == []

    async def test_an_answer_that_was_lost_does_no_harm(self, open_s3, s3_server):
        reference = await open_s3().store("key", b"content")
        with losing_the_first_answer_to_a_put(s3_server.port) as port:
            storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}")
            await storage.touch(reference, 5_000_000_000.0, "text/x-odd")
        assert await open_s3().retrieve(reference) == (b"content", "text/x-odd")
        assert (await open_s3().inspect(reference)).last_used == 5_000_000_000.0

    async def test_an_object_too_large_to_copy_is_said_and_stops_nobody(self, open_s3, caplog):
        with serving(copying_server(size=6 * 1024**3)) as port:
            storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}", boto_client_config=NO_RETRIES, prefix="")
            await storage.touch("1_1_key", 5_000_000_000.0, "text/x-odd")
            entry = await storage.inspect("1_1_key")
        assert (entry.last_used, entry.content_type) == (5_000_000_000.0, "text/plain")
        assert "S3 copies at most 5 GB at once, and it has 6442450944 bytes" in caplog.text

    async def test_encryption_is_kept_and_the_copy_guarded_at_both_ends(self, open_s3):
        """A server of our own: SeaweedFS encrypts nothing without a key service."""
        with serving(server := copying_server()) as port:
            storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}", boto_client_config=NO_RETRIES, prefix="")
            await storage.touch("1_1_key", 5_000_000_000.0)
        (request,) = server.copies
        assert request["x-amz-server-side-encryption"] == "aws:kms"
        assert request["x-amz-server-side-encryption-aws-kms-key-id"] == "arn:key"
        assert request["x-amz-server-side-encryption-bucket-key-enabled"].lower() == "true"
        assert request["x-amz-copy-source-if-match"] == request["if-match"] == '"etag"'

    async def test_a_server_that_guards_no_copies_is_asked_once_and_then_spared(self, open_s3):
        with serving(server := copying_server(guards=False)) as port:
            storage = open_s3(endpoint_url=f"http://127.0.0.1:{port}", boto_client_config=NO_RETRIES, prefix="")
            await storage.touch("1_1_key", 5_000_000_000.0)
            await storage.touch("1_1_other", 5_000_000_000.0)
        assert ["if-match" in request for request in server.copies] == [True, False, False]


def copying_server(*, size: int = 7, guards: bool = True) -> type[http.server.BaseHTTPRequestHandler]:
    """One object that is encrypted under every key, and a record of the requests to copy it."""

    class Copying(Ailing):
        copies: ClassVar[list[dict[str, str]]] = []

        def do_HEAD(self) -> None:
            self.send_response(200)
            for name, value in {
                "Content-Length": str(size),
                "Content-Type": "text/plain",
                "ETag": '"etag"',
                "x-amz-server-side-encryption": "aws:kms",
                "x-amz-server-side-encryption-aws-kms-key-id": "arn:key",
                "x-amz-server-side-encryption-bucket-key-enabled": "true",
            }.items():
                self.send_header(name, value)
            self.end_headers()

        def do_PUT(self) -> None:
            self.copies.append({name.lower(): value for name, value in self.headers.items()})
            refused = not guards and "If-Match" in self.headers
            answer = b"<Error><Code>NotImplemented</Code></Error>" if refused else b"<CopyObjectResult/>"
            self.send_response(501 if refused else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    return Copying


def test_uses_are_not_noted_by_reading(open_s3):
    storage = open_s3(clock=(clock := FakeClock()))
    assert not storage.notes_uses
    assert storage.clock is clock


def test_a_missing_boto3_names_the_extra():
    script = """
        import sys
        sys.modules["boto3"] = None
        from holdfast import HoldfastError, S3Storage
        try:
            S3Storage("bucket")
        except ImportError as error:
            assert isinstance(error, HoldfastError)
            print(error)
    """
    answer = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert "pip install 'holdfast[s3]'" in answer.stdout


def test_a_forked_process_makes_connections_of_its_own(s3_server, bucket):
    script = """
        import asyncio, os, sys, boto3
        from holdfast import S3Storage
        bucket, endpoint, access, secret = sys.argv[1:]
        session = boto3.Session(access, secret, region_name="us-east-1")
        storage = S3Storage(bucket, "forks", session, endpoint_url=endpoint)
        reference = asyncio.run(storage.store("key", b"parent"))
        child = os.fork()
        for _ in range(20):
            assert asyncio.run(storage.retrieve(reference)) == (b"parent", "text/plain")
        if child == 0:
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    arguments = [bucket, s3_server.endpoint_url, s3_server.access_key, s3_server.secret_key]
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), *arguments]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "0\n"


class CountingSession:
    def __init__(self, session):
        self.session, self.made = session, 0

    def client(self, *args, **options):
        self.made += 1
        return self.session.client(*args, **options)


async def test_first_calls_at_once_share_one_client(open_s3, boto_session):
    session = CountingSession(boto_session)
    storage = open_s3(boto_session=session)
    await asyncio.gather(*(storage.store("key", b"") for _ in range(10)))
    assert session.made == 1
