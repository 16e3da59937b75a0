"""What every command starts from: the global options, and the settings and store they lead to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventlake.settings import Settings
    from eventlake.stage.sources import Source
    from eventlake.store import Address, Store
    from eventlake.sync.source import Lake


@dataclass
class Context:
    """The global options; settings and store are read and opened when first asked for.

    Commands take it with `@click.pass_obj`. `overrides` are flags, by dotted key of the setting.
    """

    config: Path | None = None
    overrides: dict[str, object] = field(default_factory=dict)
    debug: bool = False
    env: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @cached_property
    def settings(self) -> Settings:
        from eventlake.settings import load

        return load(self.config, self.env, self.overrides)

    @cached_property
    def address(self) -> Address:
        from eventlake.store import address

        return address(self.settings)

    @cached_property
    def store(self) -> Store:
        from eventlake.store import open_store

        return open_store(self.address)

    def lake_of(self, source: Source) -> Lake:
        """The lake as the settings of one source have it."""
        from eventlake.settings import for_source
        from eventlake.sync.source import open_lake

        return open_lake(for_source(self.settings, source.settings), self.address, self.store)
