"""What S3 answers when it does not do what it was asked. Needs botocore, so it is imported with the first S3Storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from holdfast.errors import StorageAccessError, StorageError

__all__ = [
    "S3RefusedError",
    "S3UnreachableError",
    "explained",
    "has_no_lifecycle",
    "is_missing",
    "is_not_implemented",
    "is_past_the_end",
    "is_taken",
]

_MISSING = frozenset({"NoSuchKey", "NotFound", "404"})
_TAKEN = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})
_CHECK_CREDENTIALS = "check the access key, the secret key, the session's age and this machine's clock"
_TRY_LATER = "S3 is overloaded or ailing: try again later, or store less at once"
_GRANT = "grant s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket on the bucket and prefix"
_GRANT_LIFECYCLE = "grant s3:GetLifecycleConfiguration and s3:PutLifecycleConfiguration on the bucket"
_SET_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass a boto_session that has credentials"
_CHECK_ENDPOINT = "check that the endpoint is up and that this machine reaches it"
_CHECK_CONFIGURATION = "check AWS_PROFILE, the region, AWS_ENDPOINT_URL_S3 and the like, and the files in ~/.aws"
_OF_THE_NETWORK = (NoConnectionError, HTTPClientError, IncompleteReadError, FlexibleChecksumError)
_ADVICE = {
    "NoSuchBucket": "create the bucket, or check its name, the region and the endpoint",
    "AccessDenied": _GRANT,
    "403": _GRANT,
    "InvalidAccessKeyId": _CHECK_CREDENTIALS,
    "SignatureDoesNotMatch": _CHECK_CREDENTIALS,
    "ExpiredToken": _CHECK_CREDENTIALS,
    "RequestTimeTooSkewed": _CHECK_CREDENTIALS,
    "SlowDown": _TRY_LATER,
    "ServiceUnavailable": _TRY_LATER,
    "InternalError": _TRY_LATER,
    "503": _TRY_LATER,
    "500": _TRY_LATER,
}


class S3RefusedError(StorageError, ClientError):  # type: ignore[misc]
    """S3 answered with an error. `response` and `operation_name` are botocore's."""

    def __init__(self, error: ClientError, doing: str) -> None:
        super().__init__(error.response, error.operation_name)
        self._doing = doing

    def __str__(self) -> str:
        advice = _ADVICE.get(_code(self), "the code above is S3's own; its documentation explains it")
        if advice == _GRANT and "Lifecycle" in self.operation_name:
            advice = _GRANT_LIFECYCLE
        return f"cannot {self._doing}: {ClientError.__str__(self)}. What was stored before is unharmed; {advice}"


class S3UnreachableError(StorageAccessError):
    """No answer came from S3, or no request could be signed."""


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn a botocore error of the body into one that says what to do."""
    try:
        yield
    except S3RefusedError:
        raise
    except ClientError as error:
        raise S3RefusedError(error, doing) from error
    except BotoCoreError as error:
        told = f"cannot {doing}: {error}. What was stored before is unharmed; {_advice_on(error)}"
        raise S3UnreachableError(told) from error


def _advice_on(error: BotoCoreError) -> str:
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return _SET_CREDENTIALS
    return _CHECK_ENDPOINT if isinstance(error, _OF_THE_NETWORK) else _CHECK_CONFIGURATION


def is_missing(error: ClientError) -> bool:
    """Say whether S3 answered that there is no such object."""
    return _code(error) in _MISSING


def is_taken(error: ClientError) -> bool:
    """Say whether S3 answered that the key is in use already."""
    return _code(error) in _TAKEN


def has_no_lifecycle(error: ClientError) -> bool:
    """Say whether S3 answered that a bucket has no lifecycle configuration."""
    return _code(error) == "NoSuchLifecycleConfiguration"


def is_not_implemented(error: ClientError) -> bool:
    """Say whether a server answered that it does not know a header of the request."""
    return _code(error) in ("NotImplemented", "501")


def is_past_the_end(error: ClientError) -> bool:
    """Say whether S3 answered that a byte range starts behind the object's end."""
    return _code(error) in ("InvalidRange", "416")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
