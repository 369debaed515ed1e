"""Who may ask: this browser, from these pages, and nobody else.

The server listens on the loopback address, where every program and every web page of this machine
can knock. Four locks: the `Host` must be the address that was opened (another name that resolves to
this machine is an attack), a request that another site made is refused, whoever has not brought the
one-time token of the start gets no answer, and every form carries a secret that other pages cannot
read. A policy tells the browser to load nothing from elsewhere.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# A report is one file with its script inside. In the sandbox it has no origin: it cannot read these
# pages, whatever the names in its table contain.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-scripts allow-modals allow-downloads; frame-ancestors 'self'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with "no-referrer" a browser would hide the Origin of forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",  # the back button asks again, and a shared machine keeps nothing
}
OWN = ("same-origin", "none")  # Sec-Fetch-Site of these pages, and of an address that was typed in


@dataclass
class Keys:
    """The secrets of one start: for the address, the cookie and the forms."""

    address: str | None = field(default_factory=lambda: secrets.token_urlsafe(32))  # None: spent
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    form: str = field(default_factory=lambda: secrets.token_urlsafe(32))


class Guard:
    """The application behind its locks."""

    def __init__(self, app: ASGIApp, *, keys: Keys, port: int) -> None:
        self.app, self.keys = app, keys
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.cookie = f"dcem-{port}"  # cookies do not tell ports apart: two apps, two names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse, or let through; whatever the answer, with the headers above."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self.answer(Request(scope)) or self.app
        await answer(scope, receive, send_with_headers)

    def answer(self, request: Request) -> Response | None:
        """A refusal, or the cookie in exchange for the token; None for whoever may pass."""
        headers = request.headers
        host = headers.get("host", "")
        if host not in self.hosts:
            return refusal("This address is not served here.", 421)
        if headers.get("sec-fetch-site", "none") not in OWN:
            return refusal("Requests from other sites are refused.")
        if request.method != "GET" and headers.get("origin", f"http://{host}") != f"http://{host}":
            return refusal("Requests from other sites are refused.")
        has_cookie = same(self._cookie_of(headers), self.keys.cookie)
        if "token" in request.query_params and request.method == "GET":
            fits = same(request.query_params["token"], self.keys.address or "")
            if fits:
                self.keys.address = None
            if fits or has_cookie:
                entered = RedirectResponse("/", 303)
                entered.set_cookie(self.cookie, self.keys.cookie, httponly=True, samesite="strict")
                return entered
        if not has_cookie:
            return refusal(
                "Open the address that `dcem app` printed. It works once; after that, the same "
                "browser needs no token. To use another browser, start `dcem app` again: your "
                "results are still there."
            )
        return None

    def _cookie_of(self, headers: Headers) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return "" if morsel is None else morsel.value


def same(given: str, wanted: str) -> bool:
    """Whether a secret was brought, in a time that tells nothing of it; not if there is none."""
    return bool(wanted) and secrets.compare_digest(given.encode(), wanted.encode())


def refusal(why: str, status: int = 403) -> Response:
    """A refusal in plain text: it shows nothing of what is behind it."""
    return PlainTextResponse(why + "\n", status)
