"""The metrics and labels that a PromQL expression uses. This is no parser: promtool is one."""

import re
from collections.abc import Iterator

_NAME = re.compile(r"\b(ha_[a-z0-9_]+)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)\s*$")
_GROUPED = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def selected(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each metric that is selected, and the labels that it is selected by."""
    bare = _TEXT.sub('""', expression)
    for match in _NAME.finditer(bare):
        matchers = [part for part in (match[2] or "").split(",") if part.strip()]
        yield match[1], {found[1] for part in matchers if (found := _MATCHER.match(part.replace('""', "").strip()))}


def grouped(expression: str) -> set[str]:
    bare = _TEXT.sub('""', expression)
    return {label.strip() for match in _GROUPED.finditer(bare) for label in match[1].split(",") if label.strip()}
