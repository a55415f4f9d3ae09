"""The OpenAPI document, and the API held against it by schemathesis."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.unit.ha.api.serving import OPERATE, Served
from tests.unit.ha.led import Led

schemathesis = pytest.importorskip("schemathesis")

EXAMPLES = 12
"""Of each operation."""

HEADERS = {"Authorization": f"Bearer {OPERATE}"}


def endless(path: str) -> bool:
    return path.endswith("/events")


def test_every_route_of_the_api_is_described(served: Served) -> None:
    described = served.get("/api/v1/openapi.json")[1]["paths"]
    assert {
        "/leader",
        "/livez",
        "/readyz",
        "/standby",
        "/api/v1/events",
        *(f"/api/v1/jobs{rest}" for rest in ("", "/{job}", "/{job}/events", "/{job}/requests", "/{job}/requests/{id}")),
        *(f"/api/v1/jobs/{{job}}/{part}" for part in ("queries", "exceptions", "history", "checkpoints")),
    } == set(described)


def test_the_api_does_what_its_document_says(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    schema = schemathesis.openapi.from_url(f"{served.url}/api/v1/openapi.json", headers=HEADERS)
    called: list[int] = []
    for result in schema.get_all_operations():
        operation = result.ok()
        if endless(operation.path):
            continue

        @seed(17)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def holds(case: Any) -> None:
            called.append(case.call_and_validate(headers=HEADERS).status_code)

        holds()
    assert {200, 202, 404} <= set(called)
