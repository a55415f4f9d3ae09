"""Terminal: shows one line for each event of the demo, and one line with its present state."""

import time

from rich.console import Console
from rich.markup import escape


class Terminal:
    """Prints with the seconds since the demo began."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds since the demo began."""
        return time.monotonic() - self._start

    def chapter(self, text: str) -> None:
        """Announce a fault."""
        self._console.print(f"\n[bold yellow]{self.seconds:6.1f} s  {escape(text)}[/]")

    def event(self, text: str) -> None:
        """Report an event."""
        self._console.print(f"[green]{self.seconds:6.1f} s[/]  {escape(text)}")

    def status(self, text: str) -> None:
        """Show the present state."""
        self._console.print(f"[dim]{self.seconds:6.1f} s  {escape(text)}[/]")

    def check(self, name: str, passed: bool, detail: str) -> None:
        """Show one of the checks at the end."""
        mark = "[bold green]passed[/]" if passed else "[bold red]FAILED[/]"
        self._console.print(f"  {mark}  {escape(name)}: {escape(detail)}")
