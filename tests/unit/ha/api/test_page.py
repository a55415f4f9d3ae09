"""The files of the web page: who gets them, and what the browser is told about them."""

import re
from pathlib import Path

import pytest

import ha.api
from ha.api.http_api import PAGE
from tests.unit.ha.api.serving import Served

FORBIDDEN = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?://")
WEB = Path(ha.api.__file__).parent / "web"


@pytest.mark.parametrize("path", sorted(PAGE))
def test_every_file_is_there_for_everybody_and_may_load_nothing_from_elsewhere(served: Served, path: str) -> None:
    answer, content = served.raw("GET", path)
    assert (answer.status, bool(content)) == (200, True)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_every_file_of_the_folder_is_served() -> None:
    assert {f"/{each.name}" for each in WEB.iterdir()} - {"/index.html"} | {"/"} == {*PAGE}


def test_nothing_is_read_as_html_and_nothing_comes_from_elsewhere() -> None:
    for each in WEB.iterdir():
        text = each.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not FORBIDDEN.search(text)


def test_a_path_out_of_the_folder_is_not_served(served: Served) -> None:
    for path in ("/page.py", "/web/main.js", "/..%2fpage.py", "/../page.py"):
        assert served.get(path)[0] == 404
