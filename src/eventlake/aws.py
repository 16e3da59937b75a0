"""Where an S3 lake's credentials and region come from: settings, environment, then profile files.

Without boto3 the profile files are read for static keys only; single sign-on, assumed roles and
`credential_process` need boto3. Instance and container roles are obstore's own.
"""

from __future__ import annotations

import configparser
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eventlake.errors import SetupError

# Any of these means the environment itself says who we are, so profile files are not consulted.
_ENV_IDENTITY = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


@dataclass(frozen=True, slots=True)
class Access:
    """Options for obstore's S3 store, and a provider where credentials must be renewed."""

    config: dict[str, str] = field(repr=False)
    provider: Any = None


def access(wanted: Mapping[str, str], env: Mapping[str, str] | None = None) -> Access:
    """How to reach S3, given the `store` settings that are not empty.

    Raises SetupError INVALID_SETTING, MISSING_DEPENDENCY, NO_CREDENTIALS.
    """
    env = os.environ if env is None else env
    names = ("endpoint", "region", "access_key_id", "secret_access_key", "session_token")
    config = {name: wanted[name] for name in names if wanted.get(name)}
    if ("access_key_id" in config) != ("secret_access_key" in config):
        raise SetupError(
            "INVALID_SETTING",
            "`store.access_key_id` and `store.secret_access_key` belong together",
            "set both or neither",
            "store.access_key_id",
        )
    profile = wanted.get("aws_profile", "") or env.get("AWS_PROFILE", "")
    role = wanted.get("role_arn", "")
    in_env = any(env.get(name) for name in _ENV_IDENTITY)
    if role and env.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return Access({**config, "role_arn": role})
    if role:
        return Access(*_assumed_role(role, profile, config))
    if "access_key_id" in config or (in_env and not wanted.get("aws_profile")):
        return Access(config)
    return _from_profile(profile, config, env)


def _assumed_role(role: str, profile: str, config: dict[str, str]) -> tuple[dict[str, str], Any]:
    boto3 = _module("boto3")
    auth = _module("obstore.auth.boto3") if boto3 else None
    if boto3 is None or auth is None:
        raise SetupError(
            "MISSING_DEPENDENCY",
            "assuming a role needs boto3",
            "pip install boto3, or remove `store.role_arn`",
            "store.role_arn",
        )
    session = boto3.Session(
        profile_name=profile or None,
        aws_access_key_id=config.pop("access_key_id", None),
        aws_secret_access_key=config.pop("secret_access_key", None),
        aws_session_token=config.pop("session_token", None),
        region_name=config.get("region"),
    )
    provider = auth.StsCredentialProvider(session, RoleArn=role, RoleSessionName="eventlake")
    return _with_region(config, session.region_name), provider


def _from_profile(profile: str, config: dict[str, str], env: Mapping[str, str]) -> Access:
    files = _profile_files(env)
    name = profile or "default"
    if name not in files:
        if not profile:
            return Access(config)
        raise SetupError(
            "NO_CREDENTIALS",
            f"there is no profile `{name}` in the AWS configuration files",
            "known: " + (", ".join(sorted(files)) or "none"),
            "store.aws_profile",
        )
    section = files[name]
    config = _with_region(config, section.get("region") if not env.get("AWS_REGION") else None)
    if "aws_access_key_id" in section and "role_arn" not in section:
        keys = ("access_key_id", "secret_access_key", "session_token")
        return Access({**config, **{k: section["aws_" + k] for k in keys if "aws_" + k in section}})
    boto3 = _module("boto3")
    auth = _module("obstore.auth.boto3") if boto3 else None
    if boto3 is not None and auth is not None:
        return Access(config, auth.Boto3CredentialProvider(boto3.Session(profile_name=name)))
    if not profile:
        return Access(config)
    raise SetupError(
        "MISSING_DEPENDENCY",
        f"the profile `{name}` holds no static keys; other ways of signing in need boto3",
        "pip install boto3",
        "store.aws_profile",
    )


def _profile_files(env: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """All profiles, those of the credentials file winning, as the AWS tools read them."""
    home = Path(env.get("HOME", "") or Path.home()) / ".aws"
    found: dict[str, dict[str, str]] = {}
    for variable, default in (
        ("AWS_CONFIG_FILE", home / "config"),
        ("AWS_SHARED_CREDENTIALS_FILE", home / "credentials"),
    ):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(Path(env.get(variable) or default).expanduser(), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError) as error:
            raise SetupError(
                "INVALID_SETTING",
                f"the AWS configuration file cannot be read: {error}",
                "correct the file, or set `store.access_key_id` and `store.secret_access_key`",
                str(env.get(variable) or default),
            ) from error
        for section in parser.sections():
            name = section.removeprefix("profile ").strip()
            found[name] = found.get(name, {}) | dict(parser[section])
    return found


def _with_region(config: dict[str, str], region: str | None) -> dict[str, str]:
    return {"region": region, **config} if region else config


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
