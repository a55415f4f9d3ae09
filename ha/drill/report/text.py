"""How wide a text is, without the font: an estimate from above, so that nothing overlaps in any usual sans-serif.

A browser's own layout cannot be asked, because the page has no scripts, and a picture does not wrap its texts.
"""

import unicodedata

_EM = {
    **dict.fromkeys("ijl.,:;'|!·", 0.36),
    **dict.fromkeys(' frtI()[]/\\-"`', 0.44),
    **dict.fromkeys("mwMW@%—…", 1.0),
}
_LOWER, _UPPER, _FULL = 0.64, 0.78, 1.1
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn"}
"""Categories of characters that XML forbids, that are invisible or that turn the direction of what follows."""


def printable(text: str) -> str:
    """Return a text as one line that can be shown: what cannot is replaced by a mark, one character for one."""
    return "".join(map(_shown, text))


def width(text: str, size: float) -> float:
    """Return how many pixels a line takes at most.

    Args:
        text: one line.
        size: of the font, in pixels.
    """
    return size * sum(map(_em, text))


def shorten(text: str, room: float, size: float) -> str:
    """Return a text that fits: the middle is left out, since names differ at their ends.

    Args:
        text: one line.
        room: pixels that it may take.
        size: of the font, in pixels.

    Returns:
        The text, or as much of its beginning and end as fits around an ellipsis; empty if not even that does.
    """
    if width(text, size) <= room:
        return text
    kept = min(len(text) - 1, int(room / (size * 0.3)))  # no text of more characters can fit
    for characters in range(kept, 0, -1):
        tail = characters // 3
        short = text[: characters - tail].rstrip() + "…" + text[len(text) - tail :].lstrip()
        if width(short, size) <= room:
            return short
    return ""


def _em(character: str) -> float:
    if character in _EM:
        return _EM[character]
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return _FULL
    return _UPPER if character.isupper() else _LOWER


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _UNSAFE else character
