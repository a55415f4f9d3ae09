"""All settings: one struct, composed of a struct for each subject, and their documentation.

:func:`ha.config.sources.load` gathers the values from arguments, the environment and ``ha.toml``, where they stand by
their own names, without the subject. Each subject documents its fields where it declares them, and validates them.
``docs/reference`` and the help of options come from there.
"""

from typing import Any, Self

import msgspec

from ha.config.command_settings import CommandSettings, ProbeSettings, QuerySettings, StandbySettings
from ha.config.connection_settings import HttpSettings, StoreSettings
from ha.config.leadership_settings import HOST_SESSION, OWN_SESSION, SNAPSHOTS_OFF, LeadershipSettings
from ha.config.setting import SettingReference, reference_of
from leader.errors import InvalidSettings

LONGEST_ADOPTED = 400
"""A leadership is taken up only if ``long_ttl`` is at most so many times ``short_ttl``; leader/election/adoption.py."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings; all times are in seconds."""

    stores: StoreSettings = StoreSettings()
    leadership: LeadershipSettings = LeadershipSettings()
    http: HttpSettings = HttpSettings()
    command: CommandSettings = CommandSettings()
    probe: ProbeSettings = ProbeSettings()
    queries: QuerySettings = QuerySettings()
    standby: StandbySettings = StandbySettings()

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Compose them of values by name; what is not among them has its default, and other names are ignored."""
        return msgspec.convert({each.name: values for each in msgspec.structs.fields(cls)}, cls, strict=False)

    def flat(self) -> dict[str, Any]:
        """Return all values by name, in the order of the reference."""
        parts = (getattr(self, each.name) for each in msgspec.structs.fields(self))
        return {name: value for part in parts for name, value in msgspec.structs.asdict(part).items()}

    def replace(self, **values: Any) -> Self:
        """Return these settings with other values for some."""
        return self.of(**{**self.flat(), **values})

    def validate(self) -> None:
        """Check every setting that is checked before it is used."""
        # InvalidSettings: one is out of range or clashes with another; the message names them.
        for each in msgspec.structs.fields(self):
            getattr(self, each.name).validate()
        within, long, short = self.command.adopt_within, self.leadership.long_ttl, self.leadership.short_ttl
        if within and long > LONGEST_ADOPTED * short:
            raise InvalidSettings(
                f"adopt_within ({within:g} s), long_ttl ({long:g} s) and short_ttl "
                f"({short:g} s) clash: a sidecar can be succeeded only if long_ttl is at most "
                f"{LONGEST_ADOPTED} times short_ttl; set adopt_within to 0, or change one of the others."
            )
        zookeeper = self.stores.zookeeper
        if self.leadership.borrows_session and (self.leadership.snapshots == SNAPSHOTS_OFF or not zookeeper):
            missing = "snapshots is off" if zookeeper else "zookeeper is not set"
            raise InvalidSettings(
                f"zookeeper_session is {HOST_SESSION}, and {missing}: the agent lends its ZooKeeper session in the "
                f"directory of `snapshots`. Set it, or set zookeeper_session to {OWN_SESSION}."
            )


def reference() -> list[SettingReference]:
    """Return the documentation of every setting, in the order of :class:`Settings`."""
    parts = (type(each.default) for each in msgspec.structs.fields(Settings))
    return [reference_of(field) for part in parts for field in msgspec.structs.fields(part)]
