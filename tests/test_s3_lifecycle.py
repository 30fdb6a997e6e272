"""Rules by which S3 expires objects itself, in the configuration of real buckets."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from holdfast import S3Storage

DAY = 86_400

OTHERS = [
    {"ID": "logs", "Filter": {"Prefix": "logs/"}, "Status": "Enabled", "Expiration": {"Days": 3}},
    {
        "ID": "tagged",
        "Filter": {"And": {"Prefix": "q/", "Tags": [{"Key": "a", "Value": "b"}]}},
        "Status": "Disabled",
        "Expiration": {"Date": datetime.datetime(2040, 1, 1, tzinfo=datetime.timezone.utc)},
    },
    {
        "ID": "uploads",
        "Filter": {"Prefix": ""},
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    },
    {"ID": "of older days", "Prefix": "old/", "Status": "Enabled", "Expiration": {"Days": 2}},
]


@pytest.fixture
def own_bucket(client) -> str:
    """A bucket of this test alone: a configuration is the whole bucket's."""
    client.create_bucket(Bucket=(name := f"lifecycle-{uuid.uuid4().hex[:12]}"))
    return name


@pytest.fixture
def open_storage(s3_server, boto_session, own_bucket) -> Callable[[str], S3Storage]:
    return partial(S3Storage, own_bucket, boto_session=boto_session, endpoint_url=s3_server.endpoint_url)


def rules_of(client, bucket: str) -> list[dict[str, object]] | None:
    try:
        return client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        return None


class TestTheRule:
    def test_it_is_of_this_prefix_and_readable(self):
        assert S3Storage("bucket", "agents/tenant-7").lifecycle_rule(7 * DAY) == {
            "ID": "holdfast-agents/tenant-7",
            "Filter": {"Prefix": "agents/tenant-7/"},
            "Status": "Enabled",
            "Expiration": {"Days": 7},
        }

    @given(seconds=st.floats(min_value=0.001, max_value=1e9))
    def test_it_never_expires_earlier_than_asked(self, seconds):
        days = S3Storage("bucket", "agents").lifecycle_rule(seconds)["Expiration"]["Days"]
        assert isinstance(days, int)
        assert (days - 1) * DAY < seconds <= days * DAY

    @given(one=st.text(min_size=1, max_size=300), other=st.text(min_size=1, max_size=300))
    def test_each_prefix_has_a_name_of_its_own_that_s3_takes(self, one, other):
        try:
            first, second = (S3Storage("bucket", prefix).lifecycle_rule(1) for prefix in (one, other))
        except ValueError:
            return
        assert (first["ID"] == second["ID"]) == (first["Filter"] == second["Filter"])
        assert max(len(first["ID"]), len(second["ID"])) <= 255

    @pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), None, "7d", 1e300])
    def test_it_needs_a_time(self, seconds):
        with pytest.raises(ValueError, match="seconds must be a positive number"):
            S3Storage("bucket", "agents").lifecycle_rule(seconds)

    async def test_without_a_prefix_it_is_refused(self):
        storage = S3Storage("bucket")
        with pytest.raises(ValueError, match="would expire every object in the bucket"):
            storage.lifecycle_rule(DAY)
        with pytest.raises(ValueError, match="give the storage a prefix of its own"):
            await storage.install_lifecycle_rule(DAY)
        with pytest.raises(ValueError, match="give the storage a prefix of its own"):
            await storage.remove_lifecycle_rule()


class TestInstalling:
    async def test_into_a_bucket_without_any_rule(self, open_storage, own_bucket, client):
        storage = open_storage("agents")
        await storage.install_lifecycle_rule(2 * DAY)
        assert rules_of(client, own_bucket) == [storage.lifecycle_rule(2 * DAY)]

    async def test_other_rules_stay_as_they_are(self, open_storage, own_bucket, client):
        client.put_bucket_lifecycle_configuration(Bucket=own_bucket, LifecycleConfiguration={"Rules": OTHERS})
        before = rules_of(client, own_bucket)
        storage, sibling = open_storage("agents"), open_storage("agents-2")
        await storage.install_lifecycle_rule(2 * DAY)
        await sibling.install_lifecycle_rule(9 * DAY)
        ours, theirs = storage.lifecycle_rule(2 * DAY), sibling.lifecycle_rule(9 * DAY)
        assert rules_of(client, own_bucket) == [*before, ours, theirs]
        await storage.remove_lifecycle_rule()
        await sibling.remove_lifecycle_rule()
        assert rules_of(client, own_bucket) == before

    async def test_again_it_replaces_the_earlier_one_in_its_place(self, open_storage, own_bucket, client):
        storage, sibling = open_storage("agents"), open_storage("other")
        await storage.install_lifecycle_rule(2 * DAY)
        await sibling.install_lifecycle_rule(DAY)
        await open_storage("agents/").install_lifecycle_rule(30 * DAY)
        assert rules_of(client, own_bucket) == [storage.lifecycle_rule(30 * DAY), sibling.lifecycle_rule(DAY)]

    async def test_removing_the_last_rule_removes_the_configuration(self, open_storage, own_bucket, client):
        storage = open_storage("agents")
        await storage.remove_lifecycle_rule()
        await storage.install_lifecycle_rule(DAY)
        await storage.remove_lifecycle_rule()
        await storage.remove_lifecycle_rule()
        assert rules_of(client, own_bucket) is None

    async def test_what_is_stored_stays(self, open_storage):
        storage = open_storage("agents")
        reference = await storage.store("key", b"content")
        await storage.install_lifecycle_rule(0.5)
        assert await storage.retrieve(reference) == (b"content", "text/plain")


class StubbedSession:
    """Gives out one client with prepared answers, for what SeaweedFS never answers."""

    def __init__(self) -> None:
        self.made = boto3.Session("id", "secret", region_name="us-east-1").client("s3")
        self.stub = Stubber(self.made)

    def client(self, *args: object, **options: object) -> object:
        return self.made


@pytest.fixture
def stubbed() -> Iterator[StubbedSession]:
    session = StubbedSession()
    with closing(session.made), session.stub:
        yield session
        session.stub.assert_no_pending_responses()


async def test_the_smallest_size_of_transitions_is_kept(stubbed):
    size = {"TransitionDefaultMinimumObjectSize": "varies_by_storage_class"}
    storage = S3Storage("bucket", "agents", boto_session=stubbed)
    rules = [OTHERS[0], storage.lifecycle_rule(DAY)]
    stubbed.stub.add_response("get_bucket_lifecycle_configuration", {"Rules": OTHERS[:1], **size}, {"Bucket": "bucket"})
    stubbed.stub.add_response(
        "put_bucket_lifecycle_configuration",
        {},
        {"Bucket": "bucket", "LifecycleConfiguration": {"Rules": rules}, **size},
    )
    await storage.install_lifecycle_rule(DAY)


async def test_a_rule_that_is_there_already_is_not_written(stubbed):
    storage = S3Storage("bucket", "agents", boto_session=stubbed)
    answer = {"Rules": [storage.lifecycle_rule(DAY)]}
    stubbed.stub.add_response("get_bucket_lifecycle_configuration", answer, {"Bucket": "bucket"})
    await storage.install_lifecycle_rule(DAY)


async def test_a_missing_permission_is_named(stubbed):
    stubbed.stub.add_client_error("get_bucket_lifecycle_configuration", "AccessDenied", "no", 403)
    with pytest.raises(ClientError, match="grant s3:GetLifecycleConfiguration and s3:PutLifecycleConfiguration"):
        await S3Storage("bucket", "agents", boto_session=stubbed).install_lifecycle_rule(DAY)
