"""What the demo shows while it runs: one line an event, and one line that says how things stand."""

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
        """Seconds since the demo began."""
        return time.monotonic() - self._start

    def chapter(self, text: str) -> None:
        """Something is about to be done to the system."""
        self._console.print(f"\n[bold yellow]{self.seconds:6.1f} s  {escape(text)}[/]")

    def event(self, text: str) -> None:
        """Something happened."""
        self._console.print(f"[green]{self.seconds:6.1f} s[/]  {escape(text)}")

    def status(self, text: str) -> None:
        """How things stand."""
        self._console.print(f"[dim]{self.seconds:6.1f} s  {escape(text)}[/]")

    def check(self, name: str, passed: bool, detail: str) -> None:
        """One of the checks at the end."""
        mark = "[bold green]passed[/]" if passed else "[bold red]FAILED[/]"
        self._console.print(f"  {mark}  {escape(name)}: {escape(detail)}")
