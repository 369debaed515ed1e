"""From a file to a model in a real browser, without typing the name of a column."""

import io
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest
from legible import contrast
from running_app import running_app, wait_for
from tables import write_stops, write_survey

from dcem import load_model
from dcem.table.read import read_whole
from dcem.table.settings import read_settings
from dcem.tasks.nhanes import read_nhanes

WAIT = 300_000  # milliseconds, beside other tests on a small machine


def choose(page, name: str) -> None:
    """From the list of tables to columns that were understood; no name of a column is typed."""
    page.get_by_role("button", name=name).click()
    page.get_by_role("link", name="Next").click()
    page.get_by_role("button", name="Use these columns").click()
    assert page.url.endswith("/check")


def begin(page, step: str, button: str) -> None:
    page.get_by_role("link", name=step, exact=True).click()
    if step == "Fit":  # as quickly as can be
        page.get_by_label("Judge it").uncheck()
    page.get_by_role("button", name=button).click()


def finish(page) -> None:
    page.wait_for_selector(".result", timeout=WAIT)


def role(page, column: str) -> str:
    """What a column is, by the button that is pressed."""
    group = page.get_by_role("group", name=column, exact=True)
    return group.locator("input:checked").get_attribute("value")


def test_a_survey_is_dropped_on_the_page_and_understood(app, tab) -> None:
    """Like NHANES."""
    table = write_survey(app.tables.parent / "survey.csv")
    page = tab()
    page.set_input_files("input[type=file]", table)
    page.get_by_role("button", name="Use this file").click()
    page.wait_for_url("**/t/survey")
    page.get_by_role("link", name="Next").click()
    roles = {"diabetes": "label", "tested": "tested", "RIDRETH1": "group", "SEQN": "id"}
    assert {column: role(page, column) for column in roles} == roles
    page.get_by_role("button", name="Use these columns").click()
    assert page.url.endswith("/check")
    assert [p.name for p in app.work.uploads.rglob("*.csv")] == ["survey.csv"]


def test_from_stops_to_a_list_of_whom_to_search(app, tab, monkeypatch) -> None:
    """Like police stops; the file is taken from the list, and everything is taken home."""
    table = write_stops(app.tables / "stops.csv")
    page = tab()
    choose(page, "stops.csv")
    monkeypatch.chdir(app.tables)  # the shown Python does the same
    names: dict = {}
    exec(page.locator("pre[aria-label=Python]").inner_text(), names)
    assert names["table"].roles.group == ("subject_race",)
    assert names["table"].problem.tested.sum() == pytest.approx(400 * 0.43, abs=60)
    begin(page, "Audit", "Start the audit")
    begin(page, "Fit", "Fit the model")  # both at a time
    finish(page)
    page.get_by_role("link", name="Score", exact=True).click()
    page.get_by_label("Flag the highest").fill("10")
    page.get_by_role("button", name="Score these people").click()
    page.get_by_role("link", name="Next tests", exact=True).click()
    page.get_by_label("How many tests").fill("25")
    page.get_by_role("button", name="Make the list").click()
    finish(page)
    page.get_by_role("link", name="Score", exact=True).click()
    finish(page)
    assert page.locator("table.cells tbody tr").count() > 5
    page.get_by_role("link", name="Audit", exact=True).click()
    finish(page)
    page.frame_locator("iframe").locator("#answer").wait_for()
    done = {run.job["step"]: run for run in app.runs()}
    assert {run.state for run in done.values()} == {"done"}
    assert load_model(done["fit"].result).roles.label == "contraband_found"
    scores = read_whole(done["score"].result).to_pandas()
    assert len(scores) == 400
    assert (scores["flagged"].str.lower() == "true").sum() == 40
    listed = read_whole(done["next-tests"].result).to_pandas()
    assert listed["probability"].astype(float).sum() == pytest.approx(25, abs=0.1)
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download everything").click()
    with zipfile.ZipFile(downloading.value.path()) as bundle:
        inside = bundle.namelist()
        script = bundle.read("stops/commands.sh").decode()
    assert {"stops/audit-1/audit.html", "stops/fit-1/model/model.json"} <= set(inside)
    assert not any(table.name in name for name in inside)
    done = [line.split()[1] for line in script.splitlines() if line.startswith("dcem ")]
    assert done == ["audit", "fit", "predict", "next-tests"]  # as they were begun


def test_what_is_wrong_is_explained_and_nothing_is_lost(app, tab) -> None:
    (app.tables / "picture.csv").write_bytes(bytes(range(256)) * 40)
    (app.tables / "empty.csv").write_text("")
    (app.tables / "letter.pdf").write_text("%PDF")
    write_survey(app.tables / "survey.csv")
    with app.client() as client:
        for name in ("empty.csv", "letter.pdf", "/etc/passwd"):
            shown = client.post("/open", data=app.form(path=name)).text
            assert Path(name).name in re.search(r'role="alert".*?</', shown, re.DOTALL)[0]
    page = tab()
    for name in ("picture.csv", "surwey.csv"):
        page.fill("#path", name)
        page.get_by_role("button", name="Open", exact=True).click()
        said = page.get_by_role("alert").inner_text()
        assert Path(name).name in said
        if name == "surwey.csv":
            assert "'survey.csv'" in said
        page.get_by_role("link", name="Back to the tables").click()
    page.set_input_files("input[type=file]", app.tables / "letter.pdf")
    page.get_by_role("button", name="Use this file").click()
    assert "letter.pdf" in page.get_by_role("alert").inner_text()
    page.get_by_role("link", name="Back to the tables").click()
    page.get_by_role("button", name="survey.csv").click()
    page.get_by_role("link", name="Next").click()
    page.get_by_role("group", name="smoker", exact=True).get_by_text("leave out").click()
    page.get_by_text("Many columns at once").click()
    page.get_by_role("textbox", name="Leave out").fill("BMXBM")
    page.get_by_role("button", name="Use these columns").click()
    assert "'BMXBMI'" in page.get_by_role("alert").inner_text()
    assert role(page, "smoker") == "exclude"
    page.get_by_role("textbox", name="Leave out").fill("BMX*")
    page.get_by_role("group", name="RIAGENDR", exact=True).get_by_text("outcome").click()
    page.get_by_role("button", name="Use these columns").click()
    assert "RIAGENDR" in page.get_by_role("alert").inner_text()  # two outcomes
    page.get_by_role("group", name="RIAGENDR", exact=True).get_by_text("feature").click()
    page.get_by_role("button", name="Use these columns").click()
    assert page.url.endswith("/check")
    assert app.work.study("survey").roles.exclude == ("smoker", "BMX*")


def test_cancel_two_tabs_a_closed_one_the_back_button_and_a_killed_worker(app, tab) -> None:
    write_stops(app.tables / "stops.csv")
    first = tab()
    choose(first, "stops.csv")
    first.get_by_role("link", name="Compare", exact=True).click()
    first.get_by_role("button", name="Start the comparison").click()
    first.wait_for_selector("section.running")
    second = tab("/t/stops/compare")
    first.close()  # loses nothing
    assert second.get_by_role("button", name="Cancel").is_visible()
    second.goto(f"{app.address}/t/stops/roles")
    second.go_back()
    assert second.get_by_role("button", name="Cancel").is_visible()
    third = tab()
    assert (
        "running" in third.get_by_role("listitem").filter(has_text="stops.csv").first.inner_text()
    )
    [run] = app.runs()
    second.get_by_role("button", name="Cancel").click()
    second.wait_for_selector("text=Cancelled.")
    assert run.state == "cancelled"
    third.goto(f"{app.address}/t/stops/compare")
    assert "Cancelled." in third.inner_text("main")
    second.go_back()  # and forth: nothing is started anew
    second.reload()
    assert len(app.runs()) == 1
    third.get_by_role("button", name="Start the comparison").click()
    run = wait_for(lambda: next((one for one in app.runs() if one.state == "running"), None))
    wait_for(lambda: "label = contraband_found" in run.log)  # the first line, from dcem.toml
    os.kill(int((run.folder / "process").read_text()), signal.SIGKILL)
    third.wait_for_selector("text=stopped from outside", timeout=WAIT)
    assert "label = contraband_found" in third.get_by_role("alert").inner_text()
    assert third.get_by_role("button", name="Start the comparison").is_visible()


def test_without_script_everything_can_be_done(app, browser) -> None:
    write_stops(app.tables / "stops.csv")
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(f"{app.address}/?token={app.token}")
    page.set_input_files("input[type=file]", app.tables / "stops.csv")
    page.get_by_role("button", name="Use this file").click()
    page.get_by_role("link", name="Next").click()
    page.get_by_role("button", name="Use these columns").click()
    begin(page, "Compare", "Start the comparison")  # takes longer than to click
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector("text=Cancelled.")
    context.close()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_screens_are_legible_fit_and_can_be_listened_to(app, browser, width, dark) -> None:
    write_survey(app.tables / "survey.csv")
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(f"{app.address}/?token={app.token}")
    choose(page, "survey.csv")
    for address in ("/", "/t/survey", "/t/survey/roles", "/t/survey/check", "/t/survey/compare"):
        page.goto(f"{app.address}{address}")
        page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        assert [one for one in contrast(page) if one["ratio"] < 4.5] == [], address
        assert page.locator("h1").count() == 1
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
                 .filter(e => !e.labels.length && !e.ariaLabel).map(e => e.outerHTML)"""
        )
        assert unnamed == []
    context.close()


@pytest.mark.slow
def test_compare_and_go_by_it(app, tab) -> None:
    write_stops(app.tables / "stops.csv")
    page = tab()
    choose(page, "stops.csv")
    page.get_by_role("link", name="Compare", exact=True).click()
    for name in ("dcem", "y-obs", "tested-only"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    page.get_by_text("How carefully").click()
    page.get_by_label("Planted").fill("0")
    page.get_by_role("button", name="Start the comparison").click()
    finish(page)
    begin(page, "Fit", "Fit the model")
    finish(page)
    assert "comparison.json" in " ".join(app.runs()[0].job["command"])


@pytest.mark.slow
def test_a_file_of_two_gigabytes_is_kept_with_little_memory(tmp_path) -> None:
    """What arrives goes to disk; what is looked at are its first rows."""
    import resource

    row = b"1,0,yes,white,12.5\n" * 100_000
    header = b"id,label,tested,group,x\n"

    def parts(secret: str):
        yield b'--B\r\nContent-Disposition: form-data; name="secret"\r\n\r\n' + secret.encode()
        yield b'\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="big.csv"\r\n\r\n'
        yield header
        for _ in range((2 << 30) // len(row)):
            yield row
        yield b"\r\n--B--\r\n"

    with running_app(tmp_path) as app, app.client() as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kind = {"Content-Type": "multipart/form-data; boundary=B"}
        answer = client.post("/open", content=parts(app.keys.form), headers=kind, timeout=600)
        assert answer.status_code == 303
        [kept] = app.work.uploads.rglob("big.csv")
        assert kept.stat().st_size > 1.9 * (1 << 30)
        assert client.get(answer.headers["location"], timeout=600).status_code == 200
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 400_000  # kilobytes


def test_the_command_says_its_address_and_leaves_nothing_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    left = tmp_path / "tmp" / "dcem-app-0123456789abcdef"  # of an app that was killed
    left.mkdir()
    write_survey(tmp_path / "survey.csv")
    command = [sys.executable, "-u", "-m", "dcem", "app", "--no-browser", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())[0]
        client = httpx.Client(follow_redirects=True, timeout=60)
        wait_for(lambda: _answers(client, address), 60)
        page = client.get(address.partition("?")[0])
        assert "survey.csv" in page.text
        secret = re.search(r'name="secret" value="([^"]+)"', page.text)[1]
        files = {"secret": (None, secret), "file": ("my.csv", io.BytesIO(b"a,b\n1,2\n"))}
        assert client.post(address.partition("?")[0] + "open", files=files).status_code == 200
        [private] = (tmp_path / "tmp").glob("dcem-app-*")
        assert private.stat().st_mode & 0o777 == 0o700
        assert [p.name for p in private.rglob("*.csv")] == ["my.csv"]
        assert not left.exists()
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert not private.exists()
    assert (tmp_path / "dcem-app").stat().st_mode & 0o777 == 0o700


def _answers(client, address: str) -> bool:
    try:
        return client.get(address).status_code == 200
    except httpx.ConnectError:
        return False


def test_values_are_asked_for_and_one_settings_file_serves_pages_and_commands(app, tab) -> None:
    """What stands beside the table is taken; what was clicked can be written there."""
    table = write_survey(app.tables / "survey.csv")
    text = table.read_text().replace(",yes\n", ",raised\n").replace(",no\n", ",normal\n")
    table.write_text(re.sub(r",\n", ",not done\n", text))
    (app.tables / "dcem.toml").write_text('[roles]\nlabel = "diabetes"\ngroup = ["RIAGENDR"]\n')
    page = tab()
    page.get_by_role("button", name="survey.csv").click()
    page.get_by_role("link", name="Next").click()
    assert role(page, "RIAGENDR") == "group"
    assert role(page, "RIDRETH1") == "feature"
    page.get_by_role("group", name="SEQN", exact=True).get_by_text("person").click()
    for value, meaning in {"raised": "yes", "normal": "no,", "not done": "not tested"}.items():
        page.get_by_role("group", name=value, exact=True).get_by_text(meaning).click()
    page.get_by_label("Vocabulary of the reports").select_option("medicine")
    page.get_by_role("button", name="Use these columns").click()
    page.get_by_role("button", name="Replace dcem.toml").click()
    written = read_settings(app.tables / "dcem.toml")
    assert written.table == table
    assert written.roles == {
        "label": "diabetes",
        "group": ["RIAGENDR"],
        "id": "SEQN",
        "positive": ["raised"],
        "untested_value": ["not done"],
    }
    assert written.choices[""] == {"words": "medicine"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("nhanes", {"diabetes": "label", "tested": "tested", "RIDRETH1": "group", "SEQN": "id"}),
        ("diabetes130", {"A1Cresult": "label", "race": "group", "patient_nbr": "id"}),
    ],
)
def test_real_tables_to_a_model_without_typing_a_column(app, tab, shared, name, roles) -> None:
    real = shared / "real" / f"{name}.csv.gz"
    table = app.tables / f"{name}.csv"
    people = pd.read_csv(real, dtype=str, keep_default_na=False)
    if name == "nhanes":  # the survey measured everybody: what a clinic would have seen
        people = read_nhanes(real)
        tested = people["DIQ180"] == 1
        people["tested"] = np.where(tested, "yes", "no")
        found = np.where(people["LBXGH"] >= 6.5, "yes", "no")
        people["diabetes"] = np.where(tested, found, "")
        people = people.drop(columns=["LBXGH", "DIQ180", "DIQ010", "survey_weight"])
    people.sample(10_000, random_state=0).to_csv(table, index=False)
    page = tab()
    page.get_by_role("button", name=table.name).click()
    page.get_by_role("link", name="Next").click()
    assert {column: role(page, column) for column in roles} == roles
    page.get_by_role("button", name="Use these columns").click()
    assert page.url.endswith("/check")
    begin(page, "Fit", "Fit the model")
    finish(page)
    [run] = app.runs()
    assert load_model(run.result).source.rows == 10_000


def test_roles_that_are_asked_about_are_offered(app) -> None:
    path = write_stops(app.tables / "stops.csv", 400)  # precincts of 13 rows: nobody to compare
    later = pd.read_csv(path).assign(precinct=[f"p{i % 2}" for i in range(400)])
    later.to_csv(app.tables / "later.csv", index=False)
    with app.client() as client:
        for name, offered in (("stops", False), ("later", True)):
            client.post("/open", data=app.form(path=f"{name}.csv"))
            page = client.get(f"/t/{name}/roles").text
            tick = next(line for line in page.splitlines() if 'id="rare"' in line)
            assert ("checked" in tick, "who decided" in tick) == (offered, True)


def test_the_words_of_the_table_are_proposed_and_a_choice_is_kept(app) -> None:
    def chosen(client, name: str) -> str:
        page = client.get(f"/t/{name}/roles").text
        return re.search(r"<option selected>(\w+)</option>", page.split('name="words"')[1])[1]

    stops = pd.read_csv(write_stops(app.tables / "stops.csv", 400))
    stops.assign(loan_amount=1, default_before=0).to_csv(app.tables / "loans.csv", index=False)
    plain = stops.rename(columns={"contraband_found": "result"})
    plain.to_csv(app.tables / "plain.csv", index=False)
    of_tables = {"stops": "policing", "loans": "credit", "plain": "general"}
    with app.client() as client:
        for name, words in of_tables.items():
            client.post("/open", data=app.form(path=f"{name}.csv"))
            assert chosen(client, name) == words
        client.post("/t/loans/roles", data=app.form(words="medicine"))  # no column is clicked
        assert chosen(client, "loans") == "medicine"
        (app.tables / "dcem.toml").write_text('table = "stops.csv"\nwords = "general"\n')
        assert chosen(client, "stops") == "general"


def test_the_check_speaks_the_chosen_words_and_those_of_the_buttons(app) -> None:
    stops = pd.read_csv(write_stops(app.tables / "stops.csv", 400))
    stops.to_csv(app.tables / "stops.csv", index=False)  # empty where nobody was searched
    role = {"contraband_found": "label", "searched": "tested", "subject_race": "group"}
    role |= {"arrest_made": "exclude", "stop_id": "id"}
    clicks = {f"role-{i}": role[name] for i, name in enumerate(stops) if name in role}
    with app.client() as client:
        client.post("/open", data=app.form(path="stops.csv"))
        found = re.search(r'name="columns" value="(\w+)"', client.get("/t/stops/roles").text)
        for words, said in (("general", "Who was tested"), ("policing", "Who was searched")):
            form = app.form(columns=found[1], words=words, **clicks)
            client.post("/t/stops/roles", data=form)
            page = client.get("/t/stops/check").text
            assert f">{said}, and what was found<" in page
            assert "excluded" not in page
            assert '<td class="words" data-column="role">left out</td>' in page
