"""The web page: files of this package that any browser may load. They hold no data, and fetch all that they show.

The browser is told to load nothing from elsewhere, to run no script of a document, and to show the page in no frame.
"""

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

_FILES = {
    f"/{'' if each.name == 'index.html' else each.name}": (each.read_bytes(), _TYPES[each.name.rpartition(".")[2]])
    for each in files("ha.api").joinpath("web").iterdir()
    if each.name.rpartition(".")[2] in _TYPES
}

PATHS = frozenset(_FILES)

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def routes() -> list[Route]:
    """Return one route for each file."""
    return [Route(path, _file) for path in sorted(_FILES)]


async def _file(request: Request) -> Response:
    content, kind = _FILES[request.scope["path"]]
    return Response(content, headers=_HEADERS, media_type=kind)
