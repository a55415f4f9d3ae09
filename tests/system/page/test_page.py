"""The web page in a real browser, over a real server and real files: what people see, and what they can do."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leader.job.admin import JobAdmin
from leader.job.exceptions import Exceptions
from leader.job.request_folder import Requests, State
from tests.patience import PATIENCE_S
from tests.system.page.scene import EVIL, arrange, checkpoint, replica
from tests.unit.ha.api.serving import OPERATE, Served
from tests.unit.ha.conftest import hurried
from tests.unit.ha.led import Led

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    missing = "THE WEB PAGE IS NOT TESTED: there is no Chromium; on Debian: apt-get install chromium."
    pytest.skip(missing, allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="THE WEB PAGE IS NOT TESTED: run make install.")

SHOTS = os.environ.get("SCREENSHOTS", "")
"""Directory that receives pictures of the page, for people to look at; empty for none."""

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}
PATIENT: Any = {"timeout": PATIENCE_S * 1000}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return hurried(tmp_path, monkeypatch)


@pytest.fixture
def served(jobs: Path, tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "operate").write_text(OPERATE)
    made = Served(str(tmp_path / "operate"))
    arrange(jobs, made.stores.files)
    yield made
    made.close()


@pytest.fixture
def visit(browser: Any, served: Served) -> Iterator[Any]:
    opened: list[Any] = []
    said: list[str] = []

    def go(fragment: str = "", *, token: str = OPERATE, **looks: Any) -> Any:
        context = browser.new_context(viewport=looks.pop("viewport", DESKTOP), **looks)
        context.set_default_timeout(PATIENCE_S * 1000)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        if token:
            page.add_init_script(f"sessionStorage.setItem('hybrid-ha-token', '{token}')")
        page.goto(f"{served.url}/{fragment}")
        return page

    yield go
    for each in opened:
        each.close()
    refused = ("status of 400", "status of 401", "status of 404")  # by a test's own doing, and shown by the page
    assert not [each for each in said if not any(map(each.__contains__, refused))], "the browser complains of nothing"


def picture(page: Any, name: str, *, whole: bool = True) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=whole)


def test_all_jobs_at_a_glance_trouble_first(visit: Any, jobs: Path) -> None:
    page = visit()
    page.wait_for_selector("td.name a")
    assert page.locator("td.name a").all_inner_texts() == ["clicks", "payments", "orders", "reports"]
    assert page.locator("td.name .program").all_inner_texts() == ["version 3"]
    hours = page.locator("td[data-label='Last hour']").all_inner_texts()
    assert hours == ["1 failure", "-", "2 failures, 2 takeovers", "-"]
    assert page.locator("td .state").all_inner_texts() == ["FAILED", "SUSPENDED", "RUNNING", "FINISHED"]
    assert page.title() == "(2) Hybrid HA"
    assert page.locator(".stores").inner_text() == f"{jobs.as_uri()} · no ZooKeeper"
    assert page.locator("td[data-label='Rows a second']").all_inner_texts() == ["-", "-", "8,950", "-"]
    sync_api.expect(page.locator(".why")).to_have_count(2, **PATIENT)
    failed, suspended = page.locator(".why").all_inner_texts()
    assert failed == f"CommandFailed: It has ended with 1, ten times in a row: {EVIL}"
    assert "no process leads it since" in suspended
    assert page.evaluate("(each => each.scrollWidth <= each.clientWidth)(document.querySelector('.scroll'))")
    picture(page, "jobs")


def test_a_job_among_hundreds_is_found(visit: Any, jobs: Path) -> None:
    led = Led(jobs)
    for number in range(300):
        led.claim(f"job-{number:04d}", "http://10.0.0.8:4040")
    page = visit()
    sync_api.expect(page.locator("tbody tr")).to_have_count(304, **PATIENT)
    assert "304 jobs" in page.locator("[role=status]:not(#live)").inner_text()
    picture(page, "jobs-thousand", whole=False)
    page.locator("input[type=search]").fill("0042")
    sync_api.expect(page.locator("tbody tr")).to_have_count(1, **PATIENT)
    assert page.locator("td.name").all_inner_texts() == ["job-0042"]
    page.locator("input[type=search]").fill("no such job")
    page.wait_for_selector("text=No job is like that.")
    page.locator("input[type=search]").fill("")
    page.locator("button", has_text="trouble").click()
    sync_api.expect(page.locator("tbody tr")).to_have_count(2, **PATIENT)
    assert page.locator("td.name").all_inner_texts() == ["clicks", "payments"]
    page.locator("button", has_text="all 304").click()
    page.locator("th button", has_text="Job").click()
    page.locator("th button", has_text="Job").click()
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Job")
    assert page.locator("td.name a").first.inner_text() == "reports"


LOOKS: dict[str, dict[str, Any]] = {"desktop": {}, "phone": {"viewport": PHONE}, "dark": {"color_scheme": "dark"}}


@pytest.mark.parametrize("name", LOOKS)
def test_a_job_fits_and_nothing_of_it_is_taken_for_html(visit: Any, name: str) -> None:
    page = visit("#/jobs/orders", **LOOKS[name])
    page.wait_for_selector("#exceptions details")
    page.wait_for_selector("#queries .node")
    page.wait_for_selector("#checkpoints td")
    picture(page, f"top-{name}", whole=False)
    page.locator("#exceptions summary").first.click()
    picture(page, f"job-{name}")
    assert EVIL in page.locator("#queries").inner_text()
    assert EVIL in page.locator("#exceptions").inner_text()
    assert "in enrich" in page.locator("#exceptions pre").first.inner_text()
    assert page.locator("img").count() == 0
    assert page.title() == "orders - Hybrid HA"
    assert page.locator("#timeline .bar").count() == 4
    assert page.locator("#timeline .fault").count() == 2
    assert page.locator("#queries .region").count() == 2
    assert page.locator("#queries .edge").count() == 2
    assert page.locator("#checkpoints figure").count() == 3
    assert page.locator("#checkpoints .batch").count() == 9
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is pushed out of the window"


@pytest.mark.parametrize("name", LOOKS)
def test_the_inside_of_a_checkpoint(visit: Any, served: Served, jobs: Path, name: str) -> None:
    checkpoint(jobs, served.stores.files)
    page = visit("#/jobs/orders", **LOOKS[name])
    page.locator("#inside details").nth(3).wait_for()
    assert page.locator("#inside details").count() == 4
    assert page.locator("#inside td").count() == 0, "nobody has asked for it"
    page.locator("#inside summary", has_text="sums").click()
    page.wait_for_selector("#inside td:has-text('offsets/3')")
    assert "restorable" in page.locator("#inside .state.good").first.inner_text()
    assert "A restart goes on after batch 6" in page.locator("#inside details[open]").inner_text()
    picture(page, f"inside-{name}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is pushed out of the window"
    page.locator("#inside summary", has_text="audit").click()
    page.wait_for_selector("#inside [role=alert]:has-text('has no checkpoint of a query')")


def test_a_look_into_a_checkpoint_stays_open_when_a_query_is_added(visit: Any, served: Served, jobs: Path) -> None:
    checkpoint(jobs, served.stores.files)
    page = visit()
    held: list[Any] = []
    page.route("**/jobs/orders/queries", lambda route: held.append(route), times=1)  # noqa: PLW0108 - no builtin will do
    page.goto(f"{served.url}/#/jobs/orders")
    page.locator("#inside summary", has_text="sums").click()
    page.wait_for_selector("#inside td:has-text('offsets/3')")
    assert page.locator("#inside details").count() < 4
    held.pop().continue_()
    page.locator("#inside details").nth(3).wait_for()
    assert page.locator("#inside details[open] td:has-text('offsets/3')").count() == 1


def test_a_job_tells_what_is_wrong_and_what_can_be_done(visit: Any) -> None:
    page = visit("#/jobs/payments")
    page.wait_for_selector("#story li:has-text('no process leads it since')")
    page.locator("#story summary").click()
    assert "ha run payments -- COMMAND" in page.locator("#story details").inner_text()
    picture(page, "story")
    page = visit("#/jobs/orders")
    page.wait_for_selector("#story li:has-text('Last failure')")
    assert page.locator("#story a").get_attribute("href") == "http://10.0.0.7:4040"


def test_a_replica_says_how_far_it_is(visit: Any, served: Served, jobs: Path) -> None:
    replica(jobs, served.stores.files)
    page = visit("#/jobs/orders.replica")
    page.wait_for_selector("#replica td")
    assert page.locator("#replica td[data-label='Behind']").all_inner_texts() == ["0", "21"]
    assert page.locator("#replica td[data-label='Had all'] time").count() == 2
    assert "Replica of hdfs://first/jobs/orders" in page.locator("#replica").inner_text()
    assert EVIL in page.locator("#replica").inner_text()
    picture(page, "replica")
    page.goto(f"{served.url}/#/jobs/orders")
    page.wait_for_selector("#checkpoints td")
    assert page.locator("#replica").count() == 0


def test_a_replica_stands_below_its_job_and_says_how_far_it_is(visit: Any, served: Served, jobs: Path) -> None:
    replica(jobs, served.stores.files)
    page = visit()
    names = page.locator("td.name a")
    sync_api.expect(names).to_have_text(["clicks", "payments", "orders", "orders.replica", "reports"], **PATIENT)
    assert page.locator("tr:has-text('orders.replica') .why").inner_text() == EVIL
    page.locator("th button", has_text="Job").click()
    page.locator("th button", has_text="Job").click()
    sync_api.expect(names).to_have_text(["reports", "payments", "orders", "orders.replica", "clicks"], **PATIENT)
    Led(jobs).release("orders.replica")
    page.wait_for_selector("tr:has-text('orders.replica') .why:has-text('No process replicates it now.')")


def test_a_job_that_fails_often_is_in_trouble_and_one_that_is_over_is_not(visit: Any, served: Served) -> None:
    admin = JobAdmin(served.stores.files, None, 5)
    for job, more in (("orders", 1), ("reports", 3)):
        for _ in range(more):
            Exceptions(admin.directory(job)).add("exit-3", "It has ended with 3.")
    page = visit()
    hours = page.locator("td[data-label='Last hour']")
    sync_api.expect(hours).to_have_text(["1 failure", "3 failures, 2 takeovers", "-", "3 failures"], **PATIENT)
    assert page.title() == "(3) Hybrid HA"


def test_what_was_not_answered_is_asked_again(visit: Any) -> None:
    page = visit("#/jobs/reports")
    page.clock.install()
    refused = list[str]()

    def refuse_once(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=404, json={"detail": "It is not known now."})

    page.route("**/jobs/clicks/story", refuse_once)
    with page.expect_response(lambda answer: answer.status == 404):
        page.evaluate("location.hash = '#/'")
    page.wait_for_selector(".why")  # of the other job
    page.clock.fast_forward(15_000)
    page.wait_for_selector(".why:has-text('It has ended with 1')")
    assert len(refused) == 1


def test_the_list_fits_a_phone(visit: Any) -> None:
    page = visit(viewport=PHONE)
    page.wait_for_selector("td.name a")
    sync_api.expect(page.locator(".why")).to_have_count(2, **PATIENT)
    picture(page, "jobs-phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_happens_is_shown_by_itself(visit: Any, served: Served) -> None:
    page = visit("#/jobs/orders")
    page.wait_for_selector("#exceptions details")
    assert page.locator("#exceptions details").count() == 2
    directory = JobAdmin(served.stores.files, None, 5).directory("orders")
    page.locator("#exceptions summary").first.click()
    Exceptions(directory).add("ValueError", "it has just happened")
    page.wait_for_selector("#exceptions summary:has-text('it has just happened')")
    assert page.locator("#exceptions details[open]").count() == 1, "what was open stays open"


def test_an_operation_says_what_its_command_says(visit: Any) -> None:
    page = visit("#/jobs/payments")  # no process leads it
    page.wait_for_selector("button:has-text('Rewind'):enabled")
    assert page.locator("button", has_text="Hand over").is_disabled()
    assert page.locator("button", has_text="Drain its host").is_disabled()
    page.locator("button", has_text="Rewind").click()
    page.locator("dialog input[name=query]").fill("sums")
    page.locator("dialog input[name=to]").fill("3")
    page.locator("dialog input[name=outputs]").fill("keep")
    picture(page, "rewind")
    page.locator("dialog button[type=submit]").click()
    page.wait_for_selector("[role=status]:has-text('The request to rewind is failed.')")
    assert "sums" in page.locator("p[role=status].soft").inner_text()


def test_the_host_of_a_leader_is_drained(visit: Any, served: Served) -> None:
    page = visit("#/jobs/orders")
    page.wait_for_selector("button:has-text('Drain its host'):enabled")
    page.locator("button", has_text="Drain its host").click()
    page.wait_for_selector("dialog[open] h2:has-text('Drain a?')")
    page.locator("dialog input[name=reason]").fill("new disks")
    page.locator("dialog button[type=submit]").click()
    page.wait_for_selector("p[role=status]:has-text('a is being drained.')")
    found = served.get("/api/v1/hosts/a")[1]
    assert (found["running"], found["reason"]) == (True, "new disks"), "no standby takes its job over"


def test_a_request_is_confirmed_with_a_token_and_followed_by_keyboard_alone(visit: Any, served: Served) -> None:
    page = visit("", token="")
    page.wait_for_selector("dialog[open] input")  # reading needs a token here
    page.keyboard.type(OPERATE)
    page.keyboard.press("Enter")
    page.wait_for_selector("td.name a")
    assert page.evaluate("[localStorage.length, document.cookie, sessionStorage.length]") == [0, "", 1]
    page.locator("a", has_text="orders").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("button:has-text('Cancel'):enabled")
    page.locator("button", has_text="Cancel").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] h2:has-text('Cancel orders?')")
    picture(page, "confirm")
    page.keyboard.press("Escape")
    led = Requests(JobAdmin(served.stores.files, None, 5).directory("orders"))
    assert not list(led.accept()), "nothing was asked"
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] input")
    page.keyboard.press("Enter")
    page.wait_for_selector("main > p[role=status]:has-text('The request to cancel is asked.')")
    (request,) = led.accept()
    assert (request.verb, request.by) == ("cancel", "http-from-127.0.0.1")
    led.answer(request, State.DONE, "The job has ended.")
    page.wait_for_selector("main > p[role=status]:has-text('The job has ended.')")


def test_a_pause_is_shown_and_can_be_ended(visit: Any) -> None:
    page = visit("#/jobs/orders")
    page.locator("button:has-text('Pause'):enabled").click()
    page.fill("dialog input[name=token]", OPERATE)
    page.click("dialog button[type=submit]")
    page.wait_for_selector("main > p[role=status]:has-text('The request to pause is done. The job is paused')")
    page.wait_for_selector("button:has-text('Resume'):enabled")
    page.wait_for_selector("section li:has-text('paused by http-from-127.0.0.1')")
    page.wait_for_selector("button[type=button]:has-text('Pause'):disabled")


def test_a_savepoint_is_taken_where_it_is_said(visit: Any, served: Served) -> None:
    page = visit("#/jobs/orders")
    page.locator("button:has-text('Savepoint'):enabled").click()
    page.wait_for_selector("dialog[open] h2:has-text('Take a savepoint of orders?')")
    page.fill("dialog input[name=to]", "file:///not/with space/_hidden")
    page.fill("dialog input[name=token]", OPERATE)
    page.click("dialog button[type=submit]")
    page.wait_for_selector("dialog [role=alert]:has-text('is no place of a savepoint')")
    page.fill("dialog input[name=to]", "hdfs:///saved/orders-1")
    picture(page, "savepoint")
    page.click("dialog button[type=submit]")
    page.wait_for_selector("main > p[role=status]:has-text('The request to savepoint is asked.')")
    (request,) = Requests(JobAdmin(served.stores.files, None, 5).directory("orders")).accept()
    assert (request.verb, dict(request.arguments)) == ("savepoint", {"to": "hdfs:///saved/orders-1"})


def test_a_wrong_token_is_said_in_the_dialog(visit: Any) -> None:
    page = visit("#/jobs/orders")
    page.locator("button:text-is('Restart'):enabled").click()
    page.fill("dialog input", "a-token-of-nobody")
    page.click("dialog button[type=submit]")
    page.wait_for_selector("dialog [role=alert]:has-text('Send a token')")


def test_a_process_that_ends_is_said(visit: Any, served: Served) -> None:
    page = visit()
    page.wait_for_selector("#live.on")
    served.api.close()
    page.wait_for_selector("#live:not(.on)")
    assert page.locator("#trouble").is_visible()
    assert page.locator("td.name").count() == 4, "what was known stays"
