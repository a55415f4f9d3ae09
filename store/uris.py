"""URIs of directories, split without loss: scheme, authority and path are all that was given. Pure."""

from urllib.parse import SplitResult, urlsplit

from store.errors import Invalid


def split(uri: str) -> SplitResult:
    """Return the parts of a URI, or of a path alone; Invalid for a part that would be lost, since no path has it."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise Invalid(f"{uri!r} is not a URI ({error}); write hdfs://host:port/path.") from error
    if uri != uri.strip() or any(each in uri for each in "\t\r\n"):  # which urlsplit leaves out in silence
        raise Invalid(f"{uri!r} has white space at an end, or a tab or a line break in it; leave that out.")
    if "?" in uri or "#" in uri:
        raise Invalid(f"{uri!r} has a '?' or a '#', where a URI's path ends; choose a directory without.")
    return parts
