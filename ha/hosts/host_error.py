"""The error for anything that a host lacks."""

from store.errors import HaError


class HostError(HaError):
    """Something cannot be had or done on this host; the text says what to do."""
