"""The OpenAPI document, and the API held against it by schemathesis."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.unit.ha.api.serving import OPERATE, Served, status
from tests.unit.ha.led import Led

EXAMPLES = 4
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
        *(f"/api/v1/hosts/{{host}}{rest}" for rest in ("", "/drain", "/undrain")),
        *(f"/api/v1/jobs{rest}" for rest in ("", "/{job}", "/{job}/events", "/{job}/requests", "/{job}/requests/{id}")),
        *(
            f"/api/v1/jobs/{{job}}/{part}"
            for part in ("story", "queries", "exceptions", "history", "checkpoints", "logs")
        ),
        "/api/v1/jobs/{job}/checkpoints/{query}",
        "/api/v1/jobs/{job}/replica",
        *(f"/api/v1/jobs/{{job}}/operations{rest}" for rest in ("", "/{id}")),
        "/api/v1/jobs/{job}/leader",
    } == set(described)


@pytest.mark.slow
def test_the_api_does_what_its_document_says(served: Served, quick: Path) -> None:
    schemathesis = pytest.importorskip("schemathesis")  # here, because it takes long to import
    Led(quick).claim("orders", "a:1")
    served.contends["orders"] = status("orders", leads=True, epoch=1)
    schema = schemathesis.openapi.from_url(f"{served.url}/api/v1/openapi.json", headers=HEADERS)
    operations = [each.ok() for each in schema.get_all_operations()]
    # 503 is how a process says that it does not have the role.
    failing = [schemathesis.checks.not_a_server_error]
    roles = {"/leader", "/standby"}
    answered = [held(each, failing if each.path in roles else []) for each in operations if not endless(each.path)]
    assert {200, 202, 404} <= {code for codes in answered for code in codes}


def held(operation: Any, excluded: list[Any]) -> list[int]:
    """Hold an operation against the document; returns the statuses of its answers."""
    called: list[int] = []

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
        if len(called) % 2 and case.path_parameters:
            case.path_parameters["job"] = "orders"  # no generated name is that of a job
        called.append(case.call_and_validate(headers=HEADERS, excluded_checks=excluded).status_code)

    holds()
    return called
