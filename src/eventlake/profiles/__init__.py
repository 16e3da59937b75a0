"""Profiles: how events become tables, as values. Adding one touches this folder only."""

from __future__ import annotations

from eventlake.profiles.profile import Profile
from eventlake.profiles.segment import SEGMENT

PROFILES: dict[str, Profile] = {SEGMENT.name: SEGMENT}

__all__ = ["PROFILES", "Profile"]
