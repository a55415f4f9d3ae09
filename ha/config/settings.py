"""All settings as one struct, and their documentation.

:func:`ha.config.sources.load` gathers the values from arguments, the environment and ``ha.toml``.

A struct can have only one base with fields, so the subjects stand on each other: ``store_settings``,
``leadership_settings``, ``http_settings``, ``command_settings``, ``probe_settings``, ``query_settings``. Each documents
its fields where it declares them, and validates them. The table of settings in ``docs/reference`` and the help of the
command line's options come from there.
"""

from typing import Annotated

import msgspec

from ha.config.query_settings import QuerySettings
from ha.config.setting import SettingReference, reference_of, setting


class Settings(QuerySettings, frozen=True, kw_only=True):
    """All settings; all times are in seconds."""

    history: Annotated[
        str,
        setting(
            "Directory on this host into which each process writes the events that `ha check` reads.",
            default="no history",
        ),
    ] = ""


def reference() -> list[SettingReference]:
    """Return the documentation of every setting, in the order of :class:`Settings`."""
    return [reference_of(field) for field in msgspec.structs.fields(Settings)]
