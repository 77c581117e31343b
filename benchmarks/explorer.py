"""The explorer under load: latencies of 1,000 mixed requests, 20 at a time, and of the page in headless Chromium.

python benchmarks/explorer.py             # writes results/benchmark-explorer.json

The server is a process of its own, `magnetite explore`. A quarter of the requests is malformed or hostile: too large,
of the wrong type, nested deeply, with a path that leads out of the folder, from another site, a zip bomb, a GraphML
file with entities, a function whose analysis never ends. The memory is that of the server and its workers, measured
after each hundred requests. On the page, the slider of q moves: the time is from its event to the next frame after the
new colours. Without Chromium, the page is left out.
"""

import argparse
import http.client
import io
import json
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from magnetite.explorer.graph_view import encode
from magnetite.explorer.limits import Limits
from magnetite.io.record import Record
from magnetite.sorting import batcher

SEED = 0
REQUESTS, AT_ONCE = 1000, 20
GRAPHS = {
    "200 nodes, 600 edges": (200, 600),
    "200 nodes, 2,000 edges": (200, 2000),
    "500 nodes, 5,000 edges": (500, 5000),
}
MOVES = 40
"""Number of times that the slider moves."""


class Request(NamedTuple):
    """A request, and the statuses that it may get."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    statuses: tuple[int, ...] = (200,)


def api(path: str, payload: Any, statuses: tuple[int, ...] = (200,)) -> Request:
    """A request for JSON."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return Request("POST", f"/api/{path}", body, {"Content-Type": "application/json"}, statuses)


def graph(nodes: int, edges: int, seed: int) -> dict[str, Any]:
    """A random graph as the page sends it."""
    pairs = np.random.default_rng(seed).integers(nodes, size=(edges, 2))
    return {"nodes": nodes, "edges": pairs.tolist()}


def endless() -> str:
    """A function whose number of equivalent texts takes very long to count."""
    lines = "".join(f"    x{i} = a + {i} * b\n" for i in range(1990))
    return f"def f(a, b):\n{lines}    return 0\n"[:49_000].rpartition("\n")[0] + "\n"


def zip_bomb() -> bytes:
    """An array of 2 GiB of zeros in 2 MB."""
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    head += b"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 134217728), }".ljust(117) + b"\n"
    target = io.BytesIO()
    with (
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("edge_index.npy", "w", force_zip64=True) as entry,
    ):
        entry.write(head)
        for _ in range(128):
            entry.write(bytes(2**24))
    return target.getvalue()


SOURCE = "def f(a, b):\n    x = a + {0}\n    y = b * 2\n    return x - y\n"
ENTITIES = b'<!DOCTYPE g [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]><graphml>&c;</graphml>'
REFUSED = tuple(range(400, 500))


def good(number: int) -> dict[str, Request]:
    """Requests that are answered."""
    small, network = graph(200, 600, number % 7), batcher(4 + number % 5).to_dict()
    settings = {"potential": "relative", "q": number % 100 / 100}
    return {
        "the page": Request("GET", "/"),
        "an eigenvector, 200 nodes": api("graph/encode", {"graph": small, **settings}),
        "an eigenvector, 5,000 edges": api("graph/encode", {"graph": graph(500, 5000, number % 7), **settings}),
        "a spectrum over q, 200 nodes": api("graph/spectrum", {"graph": small}),
        "walks from a node": api("graph/walks", {"graph": small, "start": number % 200}),
        "a file of edges": Request("POST", "/api/graph/read?name=g.txt", b"a b\nb c\nc a\n"),
        "a code graph": api("code/graphs", {"source": SOURCE.format(number)}),
        "a rewrite": api("code/rewrite", {"source": SOURCE.format(number), "seed": number}),
        "a sorting network": api("sorting/check", network),
        "a verdict": api("sorting/verdict", network),
        "the list of results": Request("GET", "/api/results"),
    }


def hostile() -> dict[str, Request]:
    """Requests that are refused."""
    bomb, long = zip_bomb(), b" " * (4 * 2**20 + 1)
    return {
        "too large": api("graph/encode", long, (413,)),
        "wrong type": api("graph/encode", {"graph": {"nodes": "3", "edges": [["a"]]}}, REFUSED),
        "not JSON": api("graph/encode", b"\xff\xfe{", REFUSED),
        "nested deeply": api("graph/encode", b"[" * 100_000, REFUSED),
        "path traversal": Request("GET", "/static/..%2f..%2f..%2fpyproject.toml", statuses=REFUSED),
        "GraphML with entities": Request("POST", "/api/graph/read?name=g.graphml", ENTITIES, statuses=REFUSED),
        "zip bomb": Request("POST", "/api/graph/read?name=g.npz", bomb, statuses=REFUSED),
        "endless analysis": api("code/rewrite", {"source": endless()}, REFUSED),
        "another host": Request("GET", "/", headers={"Host": "other.example"}, statuses=(403,)),
        "another origin": Request("GET", "/api/about", headers={"Origin": "http://other.example"}, statuses=(403,)),
    }


RARE = {"endless analysis": 10, "zip bomb": 10}
"""Kinds that occupy a worker for seconds, and in every how many of their turns they are sent."""


def mixed(count: int) -> Iterator[tuple[str, Request]]:
    """Requests, three quarters of them good."""
    refused = hostile()
    names, turn = list(refused), 0
    for number in range(count):
        if number % 4 < 3:
            found = good(number)
            name = list(found)[(number - number // 4) % len(found)]
            yield name, found[name]
            continue
        name = names[turn % len(names)]
        if name in RARE and (turn // len(names)) % RARE[name]:
            name = "wrong type"
        turn += 1
        yield name, refused[name]


@contextmanager
def server() -> Iterator[tuple[psutil.Process, int]]:
    """`magnetite explore` on a free port."""
    command = [sys.executable, "-m", "magnetite", "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        try:
            port = int(line.split("127.0.0.1:")[1].split("/")[0])
            yield psutil.Process(process.pid), port
        finally:
            process.terminate()


def status_of(port: int, request: Request) -> int:
    """Send a request on a connection of its own, and return the status of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(request.method, request.path, request.body or None, dict(request.headers))
        response = connection.getresponse()
        response.read()
        return response.status
    except (ConnectionResetError, BrokenPipeError):  # the server refused before it had read a large body
        return 413
    finally:
        connection.close()


def memory(process: psutil.Process) -> dict[str, float]:
    """MiB of the server and of its children together, and the number of its open files."""
    own, below = process.memory_info().rss, 0
    for child in process.children(recursive=True):
        try:
            below += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return {"server": round(own / 2**20, 1), "workers": round(below / 2**20, 1), "files": process.num_fds()}


def storm(process: psutil.Process, port: int, count: int) -> dict[str, Any]:
    """Send the requests; latencies by kind, unexpected statuses, and memory over time."""
    times: dict[str, list[float]] = {}
    busy, wrong, lock, used = 0, [], threading.Lock(), []

    def send(item: tuple[str, Request]) -> None:
        nonlocal busy
        name, request = item
        began = time.perf_counter()
        status = status_of(port, request)
        took = time.perf_counter() - began
        with lock:
            times.setdefault(name, []).append(took)
            busy += status == 429
            if status not in (*request.statuses, 429):
                wrong.append([name, status])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        requests, first = list(mixed(count)), 0
        while first < count:
            list(pool.map(send, requests[first : first + 100]))
            used.append(memory(process))
            first += 100
    refused = hostile()
    return {
        "requests": count,
        "at_once": AT_ONCE,
        "busy": busy,
        "unexpected": wrong,
        "memory": used,
        "latencies": [{"kind": name, "refused": name in refused, **summary(found)} for name, found in times.items()],
    }


def summary(times: list[float]) -> dict[str, Any]:
    """Number, median, 95th percentile and maximum, in milliseconds."""
    half, most = np.percentile(times, [50, 95])
    return {
        "count": len(times),
        "p50_ms": round(1e3 * float(half), 1),
        "p95_ms": round(1e3 * float(most), 1),
        "max_ms": round(1e3 * max(times), 1),
    }


def computing(nodes: int, edges: int, rounds: int = 20) -> float:
    """Milliseconds of processor time of a request for an eigenvector: read it, compute, write the answer.

    Unlike the latency, it hardly depends on what else the machine does.
    """
    body = json.dumps({"graph": graph(nodes, edges, SEED), "potential": "relative", "q": 1.0}).encode()

    def work() -> None:
        json.dumps(encode(json.loads(body), Limits()))

    work()
    began = time.process_time()
    for _ in range(rounds):
        work()
    return round(1e3 * (time.process_time() - began) / rounds, 2)


MOVE = """async (value) => {
  const slider = document.getElementById("q"), root = document.documentElement, before = Number(root.dataset.encoded);
  const began = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const handled = performance.now() - began;
  while (Number(root.dataset.encoded) <= before) await new Promise((done) => setTimeout(done, 1));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const text = document.getElementById("graph-status").textContent;
  return [performance.now() - began, Number(text.match(/in (\\d+) ms/)[1]), handled];
}"""
"""Move the slider of q: milliseconds until the next frame, and those of the request and of the event alone."""


def moves(port: int, rounds: int) -> list[dict[str, Any]]:
    """Times of moves of the slider of q for graphs of several sizes."""
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (nodes, edges) in GRAPHS.items():
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(120_000)
            page.goto(f"http://127.0.0.1:{port}/#view=graph&example=random&n={nodes}&m={edges}")
            page.wait_for_selector("html[data-ready=graph]")
            page.wait_for_timeout(2000)
            found = [page.evaluate(MOVE, str(round(0.2 + 0.6 * (i % 37) / 37, 2))) for i in range(rounds + 3)][3:]
            whole, request, event = ([row[i] / 1e3 for row in found] for i in range(3))
            row = {"graph": name, "whole": summary(whole), "request": summary(request), "event": summary(event)}
            rows.append(row | {"processor_ms": computing(nodes, edges)})
            page.close()
        browser.close()
    return rows


def shown(result: Mapping[str, Any]) -> None:
    """Print the tables."""
    console = Console(soft_wrap=True)
    table = Table("request", "number", "p50 ms", "p95 ms", "max ms")
    for row in result["load"]["latencies"]:
        table.add_row(row["kind"], *(str(row[name]) for name in ("count", "p50_ms", "p95_ms", "max_ms")))
    console.print(table)
    for row in result["page"]:
        console.print(row["graph"], row["whole"])


def main() -> None:
    """Measure both, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--moves", type=int, default=MOVES)
    options = parser.parse_args()
    record = Record("benchmark-explorer", SEED)
    steps: dict[str, Callable[[psutil.Process, int], Any]] = {
        "page": lambda _, port: moves(port, options.moves) if shutil.which("chromium") else [],
        "load": lambda process, port: storm(process, port, options.requests),
    }
    result: dict[str, Any] = {}
    with server() as (process, port):
        for request in good(0).values():  # the workers import and compile what they need
            status_of(port, request)
        result["load_average_before"] = round(psutil.getloadavg()[0], 1)
        for name, step in steps.items():
            result[name] = step(process, port)
        result["load_average_after"] = round(psutil.getloadavg()[0], 1)
        result["answers_at_the_end"] = status_of(port, Request("GET", "/")) == 200
    record.write(options.out, result)
    shown(result)


if __name__ == "__main__":
    main()
