"""Who may ask: what comes from another site, under a foreign name or with a large body is refused before anything runs.

A web page from elsewhere that is open on this machine can send requests here, and with a name of its own that points to
127.0.0.1 it could even read the answers. Hence three rules, held around the whole application so that no route can
forget them: the name asked for must be ours; a browser that says which site asks must name this one; bodies are small.
"""

import ipaddress
import socket
from contextlib import suppress
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES: Final = 4096
REFUSED: Final = 1008  # a websocket closed for breaking a rule
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

# Everything comes from here and goes nowhere else; nobody may put the page in a frame.
HEADERS: Final = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
}  # fmt: skip


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a server that listens there."""
    address = _number(host)
    return address.is_loopback if address else host == "localhost"


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


class Guard:
    """An application behind the rules."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.names, self.any_address = app, {*LOOPBACK}, not is_loopback(host)
        if self.any_address:
            self.names |= {host.lower(), socket.gethostname().lower(), f"{socket.gethostname().lower()}.local"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        status, reason = self.refusal(scope)
        if reason and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": REFUSED, "reason": reason[:120]})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store" if scope["path"].startswith("/api/") else "no-cache")
            await send(message)

        if reason:
            await JSONResponse({"error": reason}, status)(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)

    def refusal(self, scope: Scope) -> tuple[int, str]:
        """Status and reason if a request is refused; the reason is empty if not."""
        headers, method = Headers(scope=scope), scope.get("method", "GET")
        host, origin, site = headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site", "none")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        name = name.strip("[]").lower().rstrip(".")
        # A number cannot be pointed elsewhere, as a name can.
        if name not in self.names and not (self.any_address and _number(name)):
            return 403, f"this server does not go by the name {host!r}: open it under the address it printed"
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return 403, f"requests from {origin} are refused: only pages of {host} may ask"
        # A link on another site may lead to the page; nothing else may come from there.
        follows_link = method == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("same-origin", "none") and not follows_link:
            return 403, "requests from other sites are refused"
        if "transfer-encoding" in headers:
            return 411, f"bodies must come with their length, at most {BODY_BYTES} bytes"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:20]) > BODY_BYTES:
            return 413, f"a body of {length[:20]} bytes is too large: at most {BODY_BYTES} are taken"
        return 200, ""
