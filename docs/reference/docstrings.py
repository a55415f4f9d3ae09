"""Google-style docstrings as Markdown: paragraphs, and sections such as ``Args`` as lists."""

import re
from textwrap import fill
from typing import NamedTuple

WIDTH = 118
"""Characters of a line; long words and code are not broken."""

SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises")

HEADINGS = {"Args": "Arguments"}

PLAIN = {
    "CallRefused", "CallUnknown", "Fenced", "ForeignBatch", "InvalidName", "NoEndpoint", "NoLeader", "OutputLost",
    "QueryFailed", "RegionBehind", "StoreError", "Unreachable",
}  # fmt: skip
"""Errors whose own docstring says enough."""

_ROLE = re.compile(r":(?:class|meth|func|mod|data|attr):`~?([^`]+)`")
_LITERAL = re.compile(r"``(.+?)``")
_ITEM = re.compile(r"([A-Za-z_][\w*., ]*?): (.*)")


class Docstring(NamedTuple):
    """A docstring in parts.

    Attributes:
        text: its paragraphs, as Markdown.
        sections: by title, in order; each is a list of (name, text). In ``Returns`` and ``Yields`` the name is empty.
    """

    text: str
    sections: dict[str, list[tuple[str, str]]]

    def markdown(self) -> str:
        """Return all of it; the errors come last, in one sentence."""
        parts = [self.text, *(self.section(title) for title in self.sections if title != "Raises"), self.raised()]
        return "\n\n".join(part for part in parts if part)

    def raised(self) -> str:
        """Return the errors in one sentence, with the reasons that the tree of errors does not give."""
        found = [
            f"`{name}`" if name in PLAIN else f"`{name}` ({text})" for name, text in self.sections.get("Raises", [])
        ]
        text = re.sub(
            r"; (?:the message|it) says (?:which|why)(?=\))", "", f"Raises {', '.join(found)}.".replace(".)", ")")
        )
        return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False) if found else ""

    def section(self, title: str) -> str:
        """Return one section; an empty text if the docstring has none of that title."""
        items = self.sections.get(title, [])
        if not items:
            return ""
        lines = [f"**{HEADINGS.get(title, title)}**", ""]
        for name, text in items:
            item = f"- `{name}`: {text}" if name else f"- {text}"
            lines.append(fill(item, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
        return "\n".join(lines)


def parse(text: str) -> Docstring:
    """Read a docstring as :func:`inspect.cleandoc` returns it."""
    body: list[str] = []
    sections: dict[str, list[str]] = {}
    lines = body
    for line in text.splitlines():
        title = line.removesuffix(":")
        if line.endswith(":") and title in SECTIONS:
            lines = sections.setdefault(title, [])
        else:
            lines.append(line)
    return Docstring(_paragraphs(body), {title: _items(title, found) for title, found in sections.items()})


def inline(text: str) -> str:
    """Return a line of a docstring as Markdown: roles and literals become code."""
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))


def _paragraphs(lines: list[str]) -> str:
    """Join the lines of each paragraph and fence what is indented: a drawing or an example."""
    blocks: list[str] = []
    for block in re.split(r"\n(?:[ \t]*\n)+", "\n".join(lines).strip("\n")):
        if block.startswith("    "):
            blocks.append("```text\n" + "\n".join(line.removeprefix("    ") for line in block.splitlines()) + "\n```")
        else:
            items = re.split(r"\n(?=- )", block)
            blocks.append("\n".join(_filled(item, "  " if item.startswith("- ") else "") for item in items))
    return "\n\n".join(blocks).strip()


def _filled(text: str, indent: str) -> str:
    words = inline(" ".join(text.split())).removesuffix("::")
    return fill(words, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _items(title: str, lines: list[str]) -> list[tuple[str, str]]:
    """Read ``name: text`` entries; a line that is indented deeper, or has no name, goes on with the one before it."""
    if title in {"Returns", "Yields"}:
        return [("", inline(" ".join(" ".join(lines).split())))]
    items: list[tuple[str, str]] = []
    for line in lines:
        found = _ITEM.fullmatch(line.removeprefix("    "))
        if found:
            items.append((found[1], found[2]))
        elif line.strip() and items:
            name, text = items[-1]
            items[-1] = (name, f"{text} {line.strip()}")
    return [(name, inline(text)) for name, text in items]
