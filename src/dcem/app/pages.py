"""What is shown: plain addresses, each of which can be opened again, bookmarked and gone back to.

A form is answered by a redirect to such an address, so that going back or reloading
repeats nothing.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dcem.app import commands, roles_form, steps
from dcem.app.forms import SECRET, Posted, posted
from dcem.app.guard import REPORT_POLICY, Keys
from dcem.app.places import Place, choices, preview, takes_sql
from dcem.app.rendering import environment, page_script, style
from dcem.app.runs import Run, next_folder, runs, start
from dcem.app.workspace import Study, Work, typed
from dcem.files import write_text
from dcem.methods.choosing import DEFAULT
from dcem.report.words import FIELDS, speak
from dcem.table.messages import InputError
from dcem.table.roles import Roles, as_list
from dcem.table.settings import NAME as SETTINGS
from dcem.table.settings import settings_text
from dcem.text import duration

STEPS = {  # in the order of the work: what a link says
    "preview": "Preview",
    "roles": "Columns",
    "audit": "Audit",
    "compare": "Compare",
    "fit": "Fit",
    "score": "Score",
    "next-tests": "Next tests",
}
SAMPLE_ROWS = 1000, 1_000_000_000  # of a large table, to be read
Handler = Callable[[Request], Awaitable[Response]]


class Pages:
    """Every page, for one start of the app."""

    def __init__(self, work: Work, keys: Keys) -> None:
        self.work, self.keys = work, keys

    def routes(self) -> list[Route]:
        """Addresses and what answers them."""
        of = "/t/{study}"

        def get(path: str, page: Callable[[Request], Response]) -> Route:
            return Route(path, self._shown(page))

        def post(path: str, action: Callable[[Request, Posted], str]) -> Route:
            return Route(path, self._posted(action), methods=["POST"])

        return [
            get("/", self.home),
            post("/open", self.open),
            get("/which", self.which),
            get("/style.css", lambda request: Response(style(), media_type="text/css")),
            get(
                "/script.js", lambda request: Response(page_script(), media_type="text/javascript")
            ),
            get(of, self.preview),
            get(f"{of}/roles", self.roles),
            post(f"{of}/roles", self.set_roles),
            get(f"{of}/check", self.check),
            post(f"{of}/keep", self.keep),
            post(f"{of}/leave-out", self.leave_out),
            get(f"{of}/bundle.zip", self.bundle),
            get(f"{of}/runs/{{run}}/state", self.state),
            post(f"{of}/runs/{{run}}/cancel", self.cancel),
            get(f"{of}/runs/{{run}}/{{file:path}}", self.file),
            get(f"{of}/{{step}}", self.step),
            post(f"{of}/{{step}}", self.begin),
        ]

    # ------------------------------------------------------------------------------ the way in
    def _shown(self, page: Callable[[Request], Response]) -> Handler:
        return self._answered(lambda request: run_in_threadpool(page, request))

    def _posted(self, action: Callable[[Request, Posted], str]) -> Handler:
        """An action that returns the address to go to."""

        async def acted(request: Request) -> Response:
            form = await posted(request, self.keys, self.work.uploads)
            return RedirectResponse(await run_in_threadpool(action, request, form), 303)

        return self._answered(acted)

    def _answered(self, make: Handler) -> Handler:
        """What is wrong is said on a page."""

        async def answer(request: Request) -> Response:
            try:
                return await make(request)
            except LookupError:
                raise HTTPException(404) from None
            except (InputError, OSError) as error:
                return self.problem(error_words(error), 422)

        return answer

    def problem(self, message: str, status: int) -> Response:
        """What went wrong, and the way back."""
        for folder in (*self.work.folders, self.work.uploads):
            message = message.replace(f"{folder}/", "")
        return self.page("problem.html", "Something is wrong", status, message=message)

    def page(self, name: str, title: str, status: int = 200, **shown: Any) -> Response:
        """A page from its template."""
        shown |= {"title": title, "secret": self.keys.form, "secret_name": SECRET, "STEPS": STEPS}
        study: Study | None = shown.setdefault("study", None)
        if study is not None:
            latest = {step: runs(study.folder, step)[:1] for step in steps.TITLES}
            shown["states"] = {step: found[0].state for step, found in latest.items() if found}
        shown.setdefault("recipe", None)
        return HTMLResponse(environment().get_template(name).render(shown), status)

    # ---------------------------------------------------------------------------------- a table
    def home(self, request: Request) -> Response:
        """Choose a table, or go on with one."""
        folder = self.work.inside(request.query_params.get("folder", str(self.work.start)))
        folders, tables = self.work.listing(folder)
        going = [
            (study, [run for run in runs(study.folder) if run.state == "running"])
            for study in self.work.studies()
        ]
        inside = folder not in self.work.folders
        return self.page(
            "home.html",
            "Choose a table",
            work=self.work,
            folder=folder,
            parent=folder.parent if inside else None,
            folders=folders,
            tables=tables,
            going=going,
            recipe=commands.opened(),
        )

    def open(self, request: Request, form: Posted) -> str:
        """Take a table that was handed over or named, for a study of its own or for a step."""
        named = form.get("path").strip()
        if form.file is None and not named:
            raise InputError("No file was chosen.")
        path = form.file or self.work.inside(named)
        several = bool(choices(path))
        stated = roles_form.query_beside(path) if several else None
        place = Place(path, form.get("query").strip() or stated)
        if place.query is None and several:
            asked = {name: form.get(name) for name in ("study", "step")}
            return f"/which?{urlencode({'path': str(path), **asked})}"
        if form.get("study") and form.get("step") in ("score", "next-tests"):
            study = self.work.study(form.get("study"))
            place.header()  # what cannot be read is said at once
            study.leave(people=str(path), people_query=place.query)
            return f"/t/{study.name}/{form.get('step')}"
        return f"/t/{self.work.open(place).name}"

    def which(self, request: Request) -> Response:
        """Choose among the tables of a database, or the sheets of a workbook."""
        asked = request.query_params
        path = self.work.inside(asked.get("path", ""))
        found = choices(path)
        if not found:
            raise LookupError(path)
        return self.page(
            "which.html",
            f"Which table of {path.name}?",
            path=path,
            choices=found,
            recipe=commands.asked(typed(path, self.work.start), next(iter(found.values()))),
            sql=takes_sql(path),
            asked={name: asked.get(name, "") for name in ("study", "step")},
        )

    def preview(self, request: Request) -> Response:
        """The first rows, and what each column seems to be."""
        study = self._study(request)
        return self.page(
            "preview.html",
            study.place.name,
            study=study,
            current="preview",
            seen=preview(study.place),
            size=study.place.stamp[1],
            several=bool(choices(study.table)),
            recipe=commands.looked(study),
        )

    def roles(self, request: Request) -> Response:
        """What the columns mean: a proposal, or what was said before."""
        study = self._study(request)
        proposed, told = roles_form.proposal(study.place), roles_form.roles_beside(study.place)
        plain = study.left.get("draft") or study.settings.roles or told or proposed.roles
        seen = preview(study.place)
        names = [column.name for column in seen.columns]
        typed = {role: as_list(plain.get(role)) for role in roles_form.TYPED}
        typed["exclude"] = [one for one in typed["exclude"] if one not in names]  # else clicked
        if "error" not in study.left:
            typed["features"] = []  # all others are shown as left out
        groups = as_list(plain.get("group"))
        return self.page(
            "roles.html",
            "What do the columns mean?",
            study=study,
            current="roles",
            seen=seen,
            chosen=roles_form.pressed(plain, names),
            typed=typed,
            plain=plain,
            columns=roles_form.digest(names),
            clicked=roles_form.CLICKED,
            rare=roles_form.RARE_ROLES,
            asked=any(
                f"`{role}`" in doubt for role in roles_form.RARE_ROLES for doubt in proposed.doubts
            ),
            typable=roles_form.TYPED,
            reasons={one.value: one.reason for one in proposed.suggestions},
            doubts=[] if study.roles else (*map(str, proposed.questions), *proposed.doubts),
            told=bool(told),
            values=[
                (value, number, roles_form.meaning(value, plain))
                for value, number in roles_form.label_values(study.place, plain)
            ],
            levels=roles_form.recorded_values(study.place, groups[0], plain)
            if len(groups) == 1
            else (),
            lists=steps.outputs_of(self.work.out, "next-tests"),
            fields=list(FIELDS),
            words=study.left.get("words")
            or (study.words if study.roles else roles_form.words_of(study.place)),
            error=study.left.get("error"),
            recipe=commands.checked(study),
        )

    def set_roles(self, request: Request, form: Posted) -> str:
        """Keep roles that the table can have; what it cannot is shown beside them."""
        study = self._study(request)
        words = form.get("words") if form.get("words") in FIELDS else "general"
        plain: dict[str, Any] = study.left.get("draft", {})
        try:
            plain = self._readable(roles_form.clicked(form, study.place), study)
            rows = form.whole("sample_rows", 0, *SAMPLE_ROWS) if form.get("sample_rows") else None
            asks = plain.get("label") and plain["label"] != form.get("values_of")
            if asks and roles_form.needs_meaning(study.place, plain):
                study.leave(draft=plain, error=None, words=words)
                return f"/t/{study.name}/roles#values"
            roles_form.require_roles(plain, study.place)
        except InputError as error:
            told = str(error).removeprefix(f"{study.table}: ")
            study.leave(draft=plain, error=told, words=words)
            return f"/t/{study.name}/roles"
        reasons = roles_form.proposal(study.place).suggestions
        why = {(one.role, one.value): one.reason for one in reasons}
        study.say(plain, why, words=words, sample_rows=rows)
        study.leave(draft=None, error=None, words=None)
        return f"/t/{study.name}/check"

    def check(self, request: Request) -> Response:
        """What the roles make of the table, before anything is computed from it."""
        study, roles = self._with_roles(request)
        found = roles_form.tried(study.place, roles)
        names = [column.name for column in found.table.columns]
        return self.page(
            "check.html",
            "Is this right?",
            study=study,
            current="roles",
            found=found,
            counts=found.table.problem.counts(small_cells=False),
            clicked=roles_form.CLICKED | {"excluded": "left out"},
            say=speak(study.words, [*names, *found.table.problem.group_names]),
            beside=study.table.parent / SETTINGS,
            uploaded=study.table.is_relative_to(self.work.uploads),
            flagged=[column for column in found.table.columns if column.flag],
            recipe=commands.checked(study),
        )

    def keep(self, request: Request, form: Posted) -> str:
        """Write the roles beside the table, where commands look for them."""
        study, _ = self._with_roles(request)
        settings = replace(study.settings, table=study.table)
        beside = study.table.parent / SETTINGS
        if beside.is_symlink():
            raise InputError(f"{beside} is a link, which these pages do not write to.")
        write_text(beside, settings_text(settings))
        return f"/t/{study.name}/check"

    def leave_out(self, request: Request, form: Posted) -> str:
        """Leave a column out that seems to have been recorded after the decision."""
        study, roles = self._with_roles(request)
        plain = {**study.settings.roles, "exclude": [*roles.exclude, form.get("column")]}
        roles_form.require_roles(plain, study.place)
        study.say(plain)
        return f"/t/{study.name}/check"

    # ----------------------------------------------------------------------------------- a step
    def step(self, request: Request) -> Response:
        """A step: its latest run, or the one that is asked for, and the form for another."""
        study, step = self._step(request)
        found = runs(study.folder, step)
        wanted = request.query_params.get("run")
        run = self._named(found, wanted) if wanted else next(iter(found), None)
        done = run if run is not None and run.state == "done" else None
        return self.page(
            "step.html",
            steps.TITLES[step],
            study=study,
            current="roles" if step == "times" else step,
            step=step,
            run=run,
            older=[one for one in found if one != run],
            verdict=done and done.verdict,
            rows=done and done.first_rows,
            model=done and done.model,
            options=steps.options(study, step),
            recipe=steps.recipe_of(run) if run else steps.recipe(study, step, Posted()),
            default=DEFAULT,
        )

    def begin(self, request: Request, form: Posted) -> str:
        """Start the run; one of this step that is still going on is shown instead."""
        study, step = self._step(request)
        if not any(run.state == "running" for run in runs(study.folder, step)):
            recipe = steps.recipe(study, step, form)
            folder = next_folder(study.folder, step)
            settings = (study.folder / SETTINGS).read_text(encoding="utf-8")
            files = {SETTINGS: settings, "same.py": recipe.python + "\n"}
            start(folder, recipe.words, recipe.result, study.start, files)
        return f"/t/{study.name}/{step}"

    def state(self, request: Request) -> Response:
        """How far a run is, for the script of its page."""
        run = self._run(request)
        about_run = {"state": run.state, "since": duration(run.seconds), "log": run.log}
        return JSONResponse({**run.progress, **about_run, "doing": run.doing})

    def cancel(self, request: Request, form: Posted) -> str:
        """End a run."""
        run = self._run(request)
        run.cancel()
        return f"/t/{request.path_params['study']}/{run.job['step']}?run={run.name}"

    # ------------------------------------------------------------------------------------ files
    def file(self, request: Request) -> Response:
        """A file that a run wrote: a report in its sandbox, anything else to be kept."""
        run = self._run(request)
        wanted = Path(request.path_params["file"])
        if wanted not in run.files():
            raise LookupError(wanted)
        path = run.folder / wanted
        if path.suffix == ".html" and "download" not in request.query_params:
            return FileResponse(path, headers={"Content-Security-Policy": REPORT_POLICY})
        return FileResponse(path, filename=path.name, media_type="application/octet-stream")

    def bundle(self, request: Request) -> Response:
        """Everything that was computed, with the commands; not the table itself."""
        study = self._study(request)
        number, place = tempfile.mkstemp(dir=self.work.uploads, suffix=".zip")
        with open(number, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
            bundle.writestr(f"{study.name}/commands.sh", steps.shell_script(study))
            for run in reversed(runs(study.folder)):
                if run.state == "done":
                    for one in run.files():
                        bundle.write(run.folder / one, f"{study.name}/{run.name}/{one}")
        return Temporary(place, filename=f"{study.name}.zip", media_type="application/zip")

    # ------------------------------------------------------------------------------------ small
    def _study(self, request: Request) -> Study:
        return self.work.study(request.path_params["study"])

    def _with_roles(self, request: Request) -> tuple[Study, Any]:
        study = self._study(request)
        if study.roles is None:
            raise InputError("First state what the columns mean.")
        return study, Roles.from_plain(self._readable(study.settings.roles, study))

    def _readable(self, roles: dict[str, Any], study: Study) -> dict[str, Any]:
        """Roles that name no file which these pages may not read."""
        given = roles.get("testing_probability")
        if not isinstance(given, str):
            return roles
        return {**roles, "testing_probability": self.work.of_role(given, study.place.header())}

    def _step(self, request: Request) -> tuple[Study, str]:
        step = request.path_params["step"]
        if step not in steps.TITLES:
            raise LookupError(step)
        return self._with_roles(request)[0], step

    def _run(self, request: Request) -> Run:
        return self._named(runs(self._study(request).folder), request.path_params["run"])

    def _named(self, found: list[Run], name: str) -> Run:
        for run in found:
            if run.name == name:
                return run
        raise LookupError(name)


class Temporary(FileResponse):
    """A file that is removed once it was sent, or once nobody waits for it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it and remove it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)


def error_words(error: Exception) -> str:
    """An error as a sentence."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{Path(str(error.filename)).name}: {(error.strerror or '').lower()}"
    return str(error)
