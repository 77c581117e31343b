"""The server of the explorer: static files, one route per job, and what keeps other web pages and large input out.

Every error is one line of JSON, `{"error": "…"}`, with a status of HTTP from 400 to 499.
"""

import asyncio
import json
import mimetypes
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from magnetite.explorer.examples import EXAMPLES
from magnetite.explorer.limits import Limits, Refused
from magnetite.explorer.results_view import FIGURES, NAME, Results
from magnetite.explorer.workers import Workers
from magnetite.version import __version__

STATIC = Path(__file__).parent / "static"

LIBRARY = "vendor/vis-network.min.js"
"""The graph library, which `hatch_build.py` puts there."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""The page loads nothing from elsewhere; styles are set by the graph library."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""Host names of this machine."""

ROUTES = (
    "graph/example", "graph/random", "graph/typed", "graph/arranged", "graph/encode", "graph/spectrum", "graph/walks",
    "graph/advise", "code/graphs", "code/rewrite", "code/names", "sorting/known", "sorting/generated", "sorting/check",
)  # fmt: skip
"""Jobs whose request and answer are JSON as they are."""

Handler = Callable[[Request], Awaitable[Response]]


class Explorer:
    """The application and what it holds.

    Args:
        workers: Number of processes for analyses; 0 runs them in threads, for tests.
        results: Folder of results; None if there is none.
        file: What the page opens first: name and content of a file.
        sorting_model: Folder of a run that judges sorting networks.
        hosts: Names under which the server may be reached, besides those of this machine.
        limits: Limits of each request.
    """

    def __init__(
        self,
        workers: int = 2,
        results: Path | None = None,
        file: tuple[str, bytes] | None = None,
        sorting_model: str | None = None,
        hosts: tuple[str, ...] = (),
        limits: Limits | None = None,
    ):
        self.limits = limits or Limits()
        self.count = workers
        self.results, self.file, self.sorting_model = Results(results), file, sorting_model
        self.hosts = {*LOCAL, *hosts}
        self.workers: Workers | None = None

    def application(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route("/", self._static("index.html")),
            Route("/static/{path:path}", self._file, methods=["GET"]),
            Route("/api/about", self._about, methods=["GET"]),
            Route("/api/file", self._first_file, methods=["GET"]),
            Route("/api/graph/read", self._upload, methods=["POST"]),
            Route("/api/graph/download", self._download, methods=["POST"]),
            Route("/api/sorting/verdict", self._verdict, methods=["POST"]),
            Route("/api/results", self._listed, methods=["GET"]),
            Route("/api/results/{name}", self._table, methods=["GET"]),
            Route("/api/figures/{name}", self._figure, methods=["GET"]),
            *(Route(f"/api/{name}", self._job(name), methods=["POST"]) for name in ROUTES),
        ]
        handlers: Mapping[Any, Any] = {Refused: _refused, HTTPException: _http_error}
        return Starlette(
            routes=routes,
            middleware=[Middleware(Guard, hosts=self.hosts)],
            exception_handlers=handlers,
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _application: Starlette) -> AsyncIterator[None]:
        self.workers = Workers(self.count, self.limits)
        try:
            yield
        finally:
            self.workers.close()

    async def _call(self, name: str, payload: Mapping[str, Any]) -> Any:
        if self.workers is None:
            raise RuntimeError("the application has not been started")
        return await run_in_threadpool(self.workers.call, name, payload)

    def _job(self, name: str) -> Handler:
        async def answer(request: Request) -> Response:
            return _json(await self._call(name, await self._payload(request)))

        return answer

    async def _upload(self, request: Request) -> Response:
        content = await self._body(request)
        name = request.query_params.get("name", "")
        graph = request.query_params.get("graph", "0")
        if not graph.isascii() or not graph.isdigit() or len(graph) > 9:
            raise Refused(f"graph must be a number, got {graph!r:.20}")
        return _json(await self._call("graph/read", {"name": name, "content": content, "graph": int(graph)}))

    async def _download(self, request: Request) -> Response:
        name, content = await self._call("graph/download", await self._payload(request))
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    async def _verdict(self, request: Request) -> Response:
        payload = await self._payload(request)
        return _json(await self._call("sorting/verdict", {**payload, "model": self.sorting_model}))

    async def _about(self, _request: Request) -> Response:
        from magnetite.graphs import FORMATS

        return _json(
            {
                "version": __version__,
                "examples": list(EXAMPLES),
                "formats": list(FORMATS),
                "limits": {
                    name: getattr(self.limits, name) for name in ("bytes", "nodes", "edges", "wires", "seconds")
                },
                "file": None if self.file is None else self.file[0],
                "results": bool(self.results.folder),
            }
        )

    async def _first_file(self, _request: Request) -> Response:
        if self.file is None:
            raise Refused("the explorer was started without a file", 404)
        name, content = self.file
        if name.endswith(".py"):
            return _json({"source": content.decode("utf-8", "replace")})
        return _json(await self._call("graph/read", {"name": name, "content": content}))

    async def _listed(self, _request: Request) -> Response:
        return _json({"results": await run_in_threadpool(self.results.listed)})

    async def _table(self, request: Request) -> Response:
        return _json(await run_in_threadpool(self.results.table, request.path_params["name"]))

    async def _figure(self, request: Request) -> Response:
        name = Path(request.path_params["name"])
        if not NAME.fullmatch(name.stem) or name.suffix not in FIGURES:
            raise Refused(f"a figure is one of {' '.join(FIGURES)}", 404)
        content, kind = await run_in_threadpool(self.results.figure, name.stem, name.suffix)
        return Response(content, media_type=kind)

    def _static(self, path: str) -> Handler:
        async def answer(_request: Request) -> Response:
            return _asset(path)

        return answer

    async def _file(self, request: Request) -> Response:
        return _asset(request.path_params["path"])

    async def _body(self, request: Request) -> bytes:
        limit = self.limits.bytes
        too_large = Refused(f"the request has more than {limit:,} bytes: give a smaller input", 413)
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.waiting):
                async for part in request.stream():
                    size += len(part)
                    if size > limit:
                        raise too_large
                    parts.append(part)
        except TimeoutError:
            raise Refused("the request took too long to arrive", 408) from None
        except ClientDisconnect:
            raise Refused("the request was not finished", 400) from None
        return b"".join(parts)

    async def _payload(self, request: Request) -> dict[str, Any]:
        kind = request.headers.get("content-type", "").split(";")[0].strip()
        if kind != "application/json":
            raise Refused(f"the request must be application/json, got {kind!r:.60}", 415)
        return await run_in_threadpool(_parsed, await self._body(request), self.limits.depth)


class Guard:
    """Middleware that answers only requests for this server from its own page, and adds headers to every answer.

    A page of another site can make a browser send requests here. Its `Origin` gives it away; if it has pointed a name
    of its own to this machine (DNS rebinding), its `Host` does.

    Args:
        app: The application.
        hosts: Names under which the server may be reached.
    """

    def __init__(self, app: ASGIApp, hosts: set[str]):
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        refused = self._refusal(request)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name.lower().encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        if refused is not None:
            await _error(refused, 403)(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> str | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or _name(f"http://{hosts[0]}") not in self.hosts:
            return "the Host of the request is not this server: open the address that `magnetite explore` prints"
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != hosts[0]:
            return "the request comes from another site"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "the request comes from another site"
        return None


def _name(url: str) -> str | None:
    try:
        name = urlsplit(url).hostname
    except ValueError:
        return None
    return f"[{name}]" if name and ":" in name else name


def _parsed(body: bytes, depth: int) -> dict[str, Any]:
    """The object of JSON that a request must be, nested at most this deep."""
    try:
        payload = json.loads(body, parse_constant=_constant)
    except RecursionError:
        raise Refused("the request is nested too deeply: make it flatter", 400) from None
    except ValueError:
        raise Refused("the request is not valid JSON", 400) from None
    if not isinstance(payload, dict):
        raise Refused(f"the request must be a JSON object, got {type(payload).__name__}", 400)
    level: list[Any] = [payload]
    for _ in range(depth):
        parts = (part for each in level for part in (each.values() if isinstance(each, dict) else each))
        level = [part for part in parts if isinstance(part, dict | list)]
        if not level:
            return payload
    raise Refused(f"the request is nested more than {depth} levels deep: make it flatter", 400)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _json(content: Any) -> Response:
    body = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Response(body, media_type="application/json")


def _error(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status)


async def _refused(_request: Request, error: Refused) -> Response:
    return _error(str(error), error.status)


async def _http_error(request: Request, error: HTTPException) -> Response:
    words = {404: f"there is nothing at {request.url.path!r:.100}", 405: f"{request.method} is not allowed here"}
    return _error(words.get(error.status_code, str(error.detail)), error.status_code)


def _asset(path: str) -> Response:
    file = STATIC / path if path.isprintable() else STATIC
    if not file.resolve().is_relative_to(STATIC.resolve()) or not file.is_file():
        raise Refused(f"there is no file {path!r:.100}", 404)
    kind = "text/javascript" if file.suffix == ".js" else mimetypes.guess_type(file.name)[0]
    return Response(file.read_bytes(), media_type=kind)


def check_library() -> None:
    """Raise an error if the graph library is missing, as in a clone that was not installed."""
    if not (STATIC / LIBRARY).is_file():
        raise FileNotFoundError(
            f"{STATIC / LIBRARY} is missing: run `pip install -e .` in the clone, which installs it"
        )


def free_socket(host: str, port: int) -> socket.socket:
    """A listening socket on this port, or on another one if it is taken.

    Args:
        host: Address to listen on.
        port: The port to try first.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reason: OSError | None = None
    for candidate in (port, *range(port + 1, min(port + 20, 65536)), 0):
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((host, candidate))
            opened.listen(128)
            return opened
        except OSError as error:
            opened.close()
            reason = error
    raise OSError(f"cannot listen on {host}: {reason}; give another --host")


def serve(explorer: Explorer, listening: socket.socket, opened: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C.

    Args:
        explorer: The application.
        listening: The socket.
        opened: Called once the server answers.
    """
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            opened()

    config = uvicorn.Config(
        explorer.application(),
        log_level="warning",
        access_log=False,
        timeout_keep_alive=10,
        limit_concurrency=200,
        h11_max_incomplete_event_size=32_768,
        server_header=False,
    )
    Server(config).run(sockets=[listening])
