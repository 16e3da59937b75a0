"""obstore's exceptions as ours: one table, applied by `guarded` around every store call.

obstore tells most failures apart only in its message, so provider codes, HTTP statuses and errno
values are read from there; nothing else in the package looks at message texts.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from obstore import exceptions as obs

from eventlake.errors import Error, SetupError, StateError, TransientError

_ERRNO = re.compile(r"\(os error (\d+)\)")
_STATUS = re.compile(r"status code: (\d{3})")
_PROVIDER = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_NOISE = re.compile(
    r"Error performing (?:list request: Error performing )?| in [\d.]+.?s\b(?=,| -|$)"
)
# The credential chain of the S3, Azure and Google clients ends at the instance metadata service.
_METADATA_SERVICE = re.compile(r"169\.254\.169\.254|metadata\.google\.internal|/msi/token")
_NO_CONNECTION = re.compile(r"kind: (Connect|Timeout|Interrupted|Request|Decode)\b|dns error")

_Meaning: TypeAlias = tuple[type[Error], str, str]

_PERMISSION_HINT = (
    "give the identity in use the right to do this there; `eventlake doctor` tries all"
)
_CREDENTIALS_HINT = (
    "check the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AZURE_*, GOOGLE_*), "
    "`store.aws_profile`, or run where an instance role exists"
)

_BY_ERRNO: dict[int, _Meaning] = {
    errno.EACCES: (SetupError, "INSUFFICIENT_PERMISSIONS", _PERMISSION_HINT),
    errno.EPERM: (SetupError, "INSUFFICIENT_PERMISSIONS", _PERMISSION_HINT),
    errno.EROFS: (SetupError, "INSUFFICIENT_PERMISSIONS", "the file system is read-only"),
    errno.ENOSPC: (SetupError, "STORE_FULL", "free space, then run the same command again"),
    errno.EDQUOT: (SetupError, "STORE_FULL", "raise the quota, then run the same command again"),
    errno.ENOTDIR: (SetupError, "INVALID_SETTING", "a file is in the way of a folder of the lake"),
    errno.EEXIST: (SetupError, "INVALID_SETTING", "a file is in the way of a folder of the lake"),
    errno.ENOENT: (SetupError, "INVALID_SETTING", "the folder cannot be made there"),
}
_BY_PROVIDER: dict[str, _Meaning] = {
    "InvalidAccessKeyId": (SetupError, "INSUFFICIENT_PERMISSIONS", _CREDENTIALS_HINT),
    "SignatureDoesNotMatch": (SetupError, "INSUFFICIENT_PERMISSIONS", _CREDENTIALS_HINT),
    "ExpiredToken": (SetupError, "INSUFFICIENT_PERMISSIONS", "sign in again"),
    # What versitygw answers (with status 404) for InvalidAccessKeyId.
    "XAdminUserNotFound": (SetupError, "INSUFFICIENT_PERMISSIONS", _CREDENTIALS_HINT),
    "NoSuchBucket": (SetupError, "BUCKET_NOT_FOUND", "create the bucket or correct `lake.url`"),
    "ContainerNotFound": (
        SetupError,
        "BUCKET_NOT_FOUND",
        "create the container or correct `lake.url`",
    ),
    "SlowDown": (TransientError, "STORE_THROTTLED", "run the same command again later"),
    "ServerBusy": (TransientError, "STORE_THROTTLED", "run the same command again later"),
    "AuthorizationHeaderMalformed": (SetupError, "INVALID_SETTING", "correct `store.region`"),
    "PermanentRedirect": (SetupError, "INVALID_SETTING", "correct `store.region`"),
}
_BY_STATUS: dict[str, _Meaning] = {
    "301": (SetupError, "INVALID_SETTING", "correct `store.region` or `store.endpoint`"),
    "307": (SetupError, "INVALID_SETTING", "correct `store.region` or `store.endpoint`"),
    "401": (SetupError, "INSUFFICIENT_PERMISSIONS", _CREDENTIALS_HINT),
    "403": (SetupError, "INSUFFICIENT_PERMISSIONS", _PERMISSION_HINT),
    "404": (SetupError, "BUCKET_NOT_FOUND", "create the bucket or correct `lake.url`"),
    "408": (TransientError, "STORE_UNAVAILABLE", "run the same command again later"),
    "429": (TransientError, "STORE_THROTTLED", "run the same command again later"),
    "503": (TransientError, "STORE_THROTTLED", "run the same command again later"),
}


@contextmanager
def guarded(action: str, key: str) -> Iterator[None]:
    """Turns what obstore raises inside into our errors, saying what was attempted on which key."""
    try:
        yield
    except Error:
        raise
    except (obs.BaseError, OSError, NotImplementedError) as error:
        raise translated(error, action, key) from error


def is_missing(error: BaseException) -> bool:
    """Whether the error says that this one object is not there (and the bucket is)."""
    if not isinstance(error, FileNotFoundError):
        return False
    provider = _PROVIDER.search(str(error))
    # Without a body (HEAD, local files) a 404 can only be read as a missing object.
    return provider is None or provider[1] in ("NoSuchKey", "BlobNotFound", "NotFound")


def translated(error: BaseException, action: str, key: str) -> Error:
    """Our error for one of obstore's."""
    kind, code, hint = _meaning(error)
    return kind(code, f"cannot {action}: {_first_line(error)}", hint, key or "the lake")


def _meaning(error: BaseException) -> _Meaning:
    text = str(error)
    for rule in (_by_kind, _by_code, _by_words):
        found = rule(error, text)
        if found:
            return found
    return SetupError, "STORE_REFUSED", "`eventlake doctor` tries every operation one by one"


def _by_code(_error: BaseException, text: str) -> _Meaning | None:
    """By what the system or the store's server calls the failure."""
    number, status = _ERRNO.search(text), _STATUS.search(text)
    if number and int(number[1]) in _BY_ERRNO:
        return _BY_ERRNO[int(number[1])]
    if status and status[1] in _BY_STATUS:
        return _BY_STATUS[status[1]]
    if status and status[1].startswith("5"):
        return TransientError, "STORE_UNAVAILABLE", "run the same command again later"
    return None


def _by_kind(error: BaseException, text: str) -> _Meaning | None:
    """By the exception's class, except where the server is more exact."""
    provider = _PROVIDER.search(text)
    if is_missing(error):
        return StateError, "OBJECT_NOT_FOUND", "`eventlake doctor` checks the lake"
    if provider and provider[1] in _BY_PROVIDER:
        return _BY_PROVIDER[provider[1]]
    if _METADATA_SERVICE.search(text):
        return SetupError, "NO_CREDENTIALS", _CREDENTIALS_HINT
    if isinstance(error, obs.PermissionDeniedError | obs.UnauthenticatedError | PermissionError):
        return SetupError, "INSUFFICIENT_PERMISSIONS", _PERMISSION_HINT
    if isinstance(error, obs.UnknownConfigurationKeyError):
        return SetupError, "INVALID_SETTING", "correct `store.options`"
    return None


def _by_words(_error: BaseException, text: str) -> _Meaning | None:
    """By the words of the HTTP client, for failures before any answer."""
    if "BadScheme" in text:
        return (
            SetupError,
            "INVALID_SETTING",
            "set `store.allow_http = true` for an http:// endpoint",
        )
    if _NO_CONNECTION.search(text):
        hint = "check the network, `store.endpoint` and `store.region`; then run it again"
        return TransientError, "STORE_UNAVAILABLE", hint
    return None


def _first_line(error: BaseException) -> str:
    """What the provider says, or the first line of obstore's message without its timings."""
    text = str(error)
    said = _MESSAGE.search(text)
    provider = _PROVIDER.search(text)
    if said and provider:
        return f"{said[1]} ({provider[1]})"
    line = text.partition("\n")[0].partition("Debug source")[0]
    return _NOISE.sub("", line).strip(" -")[:400]
