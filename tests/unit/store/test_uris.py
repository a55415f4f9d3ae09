"""URIs that are split: nothing of them is lost, or they are refused."""

import pytest

from store.errors import Invalid
from store.uris import split


@pytest.mark.parametrize(
    "path", ["/a/50%41", "/a b/ä,c", "/a/[b]{c}", "/a//b", "/日/🚀", "/it\x92s", "/a;b=c&d", "relative"]
)
@pytest.mark.parametrize("root", ["hdfs://host:8020", "file://", ""])
def test_what_is_put_together_again_is_what_was_given(root: str, path: str) -> None:
    parts = split(f"{root}{path}" if root and path.startswith("/") else path)
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    assert f"{scheme}{parts.netloc}{parts.path}" == (f"{root}{path}" if root and path.startswith("/") else path)


@pytest.mark.parametrize(
    "uri", ["file:///a#b", "/a#", "hdfs://h/a?b", "/a?", " /a", "/a ", "/a\tb", "/a\nb", "hdfs://h:x/a"]
)
def test_what_would_be_lost_is_refused(uri: str) -> None:
    with pytest.raises(Invalid, match=r"where a URI's path ends|white space|is not a URI"):
        split(uri)
