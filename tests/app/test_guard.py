"""Who may ask: another site's page cannot read or start anything."""

import re
import subprocess
from html import unescape

from tables import write_stops

from dcem.app.guard import Keys
from dcem.app.pages import Pages

ADDRESSES = [
    ("GET", "/"),
    ("GET", "/style.css"),
    ("GET", "/t/stops"),
    ("GET", "/nothing"),
    ("POST", "/open"),
]
FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]
EVIL = "<img src=x onerror=alert(1)>'\"; touch pwned; $(touch pwned) `touch pwned` & {{191*7}}"


def studied(app) -> None:
    """Open a table, as a form would."""
    write_stops(app.tables / "stops.csv", 60)
    with app.client() as client:
        assert client.post("/open", data=app.form(path="stops.csv")).status_code == 303


def test_no_token_no_answer(app) -> None:
    studied(app)
    with app.client(entered=False) as client:
        for method, address in ADDRESSES:
            answer = client.request(method, address)
            assert answer.status_code == 403
            assert "stops" not in answer.text
            wrong = client.request(method, address, headers={"Cookie": f"dcem-{app.port}=x"})
            assert wrong.status_code == 403


def test_the_token_works_once_and_becomes_a_cookie_that_no_script_or_site_gets(app) -> None:
    with app.client(entered=False) as client:
        assert client.get("/?token=wrong").status_code == 403
        assert client.head(f"/?token={app.token}").status_code == 403
        assert client.post(f"/?token={app.token}").status_code == 403
        entered = client.get(f"/?token={app.token}")
        assert entered.status_code == 303
        assert entered.headers["location"] == "/"
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/").status_code == 200
        assert client.get(f"/?token={app.token}").status_code == 303  # back in the same browser
    with app.client(entered=False) as other:
        assert other.get(f"/?token={app.token}").status_code == 403
        assert other.get("/?token=").status_code == 403


def test_another_host_is_refused_though_it_leads_here(app) -> None:
    """DNS rebinding: a name of another site that resolves to this machine."""
    with app.client() as client:
        for host in ("evil.example", f"evil.example:{app.port}", "127.0.0.1", "[::1]:1", ""):
            assert client.get("/", headers={"Host": host}).status_code == 421, host
        for host in (app.host, f"localhost:{app.port}"):
            assert client.get("/", headers={"Host": host}).status_code == 200, host


def test_another_site_cannot_post_although_the_browser_has_the_cookie(app) -> None:
    write_stops(app.tables / "stops.csv", 60)
    with app.client() as client:
        for headers in FOREIGN:
            answer = client.post("/open", data=app.form(path="stops.csv"), headers=headers)
            assert answer.status_code == 403, headers
            assert app.work.studies() == []
            if "Sec-Fetch-Site" in headers:
                assert client.get("/", headers=headers).status_code == 403


def test_every_form_needs_its_secret(app) -> None:
    studied(app)
    posts = [r.path for r in Pages(app.work, Keys()).routes() if "POST" in (r.methods or ())]
    assert len(posts) >= 5
    with app.client(**{"Origin": app.address, "Sec-Fetch-Site": "same-origin"}) as client:
        for path in posts:
            address = path.format(study="stops", step="audit", run="audit-1")
            for data in ({}, {"secret": "wrong"}, {"secret": ""}):
                assert client.post(address, data=data).status_code == 403, address
    assert app.runs() == []


def test_a_file_without_the_secret_before_it_is_not_kept(app) -> None:
    parts = [("file", ("x.csv", b"a,b\n" * 1000)), ("secret", (None, app.keys.form))]
    with app.client() as client:
        assert client.post("/open", files=parts).status_code == 403
    assert [path for path in app.work.uploads.rglob("*") if path.is_file()] == []


def test_pages_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(app) -> None:
    with app.client() as client:
        for address, status in (("/", 200), ("/nothing", 404), ("/style.css", 200)):
            answer = client.get(address)
            assert answer.status_code == status
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in answer.headers


def test_a_path_outside_the_chosen_folder_is_refused(app) -> None:
    secret = write_stops(app.tables.parent / "secret.csv", 30)
    (app.tables / "link.csv").symlink_to(secret)
    (app.tables / "sub").mkdir()
    with app.client() as client:
        for path in (
            "/etc/passwd",
            "../secret.csv",
            "link.csv",
            "sub/../../secret.csv",
            "~/",
            "\0",
        ):
            assert client.post("/open", data=app.form(path=path)).status_code == 422, path
            assert client.get("/", params={"folder": path}).status_code == 422, path
        assert client.get("/", params={"folder": ".."}).status_code == 422
    assert app.work.studies() == []


def test_addresses_lead_to_no_other_folder(app) -> None:
    studied(app)
    with app.client() as client:
        for name in ("..%2f..%2fsecret", "%2e%2e", "a%2fb", "stops%00"):
            assert client.get(f"/t/{name}").status_code == 404
            assert client.get(f"/t/stops/runs/{name}/state").status_code == 404
            assert client.get(f"/t/stops/runs/audit-1/{name}").status_code == 404


def test_a_name_is_text_on_the_page_and_one_word_in_the_shell(app) -> None:
    table = app.tables / "evil & <b>name$(touch pwned).csv"
    text = write_stops(app.tables / "stops.csv", 200).read_text()
    quoted = '"' + EVIL.replace('"', '""') + '"'
    table.write_text(text.replace("subject_race", quoted, 1).replace("white", "<u>white</u>"))
    with app.client() as client:
        opened = client.post("/open", data=app.form(path=table.name))
        study = opened.headers["location"]
        roles = {"label": "contraband_found", "tested": ["searched"], "group": [EVIL]}
        plain = {**roles, "missing": ["NA"], "exclude": ["arrest_made"]}
        app.work.study(study.removeprefix("/t/")).say(plain)
        for page in ("", "/roles", "/check", "/audit"):
            shown = client.get(study + page)
            assert shown.status_code == 200
            assert "<img" not in shown.text
            assert "<u>" not in shown.text
            assert "1337" not in shown.text
            assert table.name in unescape(shown.text)
            assert page == "/audit" or EVIL in unescape(shown.text)  # there, quoted for a shell
        command = unescape(
            re.search(r"<pre[^>]*><code>(dcem audit .*?)</code>", shown.text, re.S)[1]
        )
        tell = f"dcem() {{ printf '%s\\0' \"$@\"; }}; {command}"
        told = subprocess.run(["sh", "-c", tell], cwd=app.tables, capture_output=True, check=True)
        words = told.stdout.decode().split("\0")
        assert words[:2] == ["audit", table.name]
        assert not (app.tables / "pwned").exists()
        code = unescape(re.search(r"<pre[^>]*><code>(import .*?)</code>", shown.text, re.S)[1])
        compile(code, "shown", "exec")
        assert repr(EVIL) in code


def test_a_page_of_another_site_in_the_same_browser_reads_and_starts_nothing(app, browser) -> None:
    studied(app)
    context = browser.new_context()
    mine = context.new_page()
    mine.goto(f"{app.address}/?token={app.token}")
    assert "stops.csv" in mine.content()
    context.route("http://evil.example/*", lambda route: route.fulfill(body="<p>evil</p>"))
    other = context.new_page()
    other.goto("http://evil.example/")
    asks = "([url, how]) => fetch(url, how).then(a => a.text()).catch(() => 'refused')"
    for how in ({"credentials": "include"}, {"credentials": "include", "mode": "no-cors"}):
        assert "stops" not in other.evaluate(asks, [f"{app.address}/t/stops", how])
    with other.expect_navigation():
        other.evaluate(
            """url => { const form = document.createElement("form");
                 form.method = "post"; form.action = url + "/t/stops/audit";
                 document.body.append(form); form.submit(); }""",
            app.address,
        )
    assert "stops" not in other.content()
    assert app.runs() == []
    mine.reload()
    assert "stops.csv" in mine.content()  # who has the cookie goes on
    context.close()
