import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from magnetite.explorer.limits import Limits
from magnetite.explorer.results_view import Results
from magnetite.explorer.server import ROUTES, Explorer, free_socket
from magnetite.explorer.workers import jobs
from paper.__main__ import FIGURES, OWN, TRAINED
from tests.explorer.conftest import HOST

SPEC: Any = spec_from_file_location("explorer_load", Path(__file__).parents[2] / "benchmarks" / "explorer.py")
load: Any = module_from_spec(SPEC)
SPEC.loader.exec_module(load)
"""The requests of the benchmark."""

PATH = {"nodes": 3, "edges": [[0, 1], [1, 2]]}


def test_every_job_has_a_route(client):
    special = {"graph/read", "graph/download", "sorting/verdict"}
    assert set(jobs()) == set(ROUTES) | special


def test_the_page_and_all_that_it_loads_are_in_the_package(client):
    page = client.get("/").text
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    for name in ("app.js", "style.css", "icon.svg", "graph.js", "code.js", "sorting.js", "results.js", "theme.js"):
        response = client.get(f"/static/{name}")
        assert response.status_code == 200
        assert "//cdn" not in response.text


def test_the_policy_forbids_other_sites(client):
    headers = client.get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"host": "evil.example:8000"}, {"host": ""}, {"host": "127.0.0.1.evil.example"},
     {"host": "127.0.0.1@evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"},
     {"origin": "http://127.0.0.1:9999"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/about", "/static/app.js"])
def test_other_hosts_and_origins_are_refused(client, headers, path):
    response = client.get(path, headers=headers)
    assert response.status_code == 403
    assert response.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_names_of_this_machine_are_accepted(client, host):
    headers = {"host": host, "origin": f"http://{host}"}
    assert client.get("/api/about", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static//etc/passwd",
     "/static/%2fetc%2fpasswd", "/static/", "/static/vendor", "/api/results/..%2fsecret", "/api/results/%2e%2e",
     "/api/results/damaged", "/api/results/nothing", "/api/figures/..%2f..%2fsecret.svg", "/api/figures/claims.json",
     "/api/figures/figure-examples.exe", "/nothing", "/api/nothing", "/api/results/" + "a" * 3000, "/static/a%00b"],
)  # fmt: skip
def test_no_path_leads_out_of_the_folders(client, path):
    response = client.get(path)
    assert 400 <= response.status_code < 500
    assert "secret" not in response.text.replace("secret'", "").replace("secret.svg", "")
    assert response.json()["error"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [(b"{", "application/json", 400), (b"[]", "application/json", 400), (b"", "application/json", 400),
     (b"{}", "text/plain", 415), (b"{}", "multipart/form-data", 415), (b"\xff\xfe", "application/json", 400),
     (b'{"a": NaN}', "application/json", 400), (b"[" * 200_000, "application/json", 400),
     (b'{"a":' * 30 + b"1" + b"}" * 30, "application/json", 400), (b"1" * 5000, "application/json", 400),
     (b" " * (4 * 2**20 + 1), "application/json", 413)],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_bodies_that_are_not_small_flat_json_are_refused(client, body, kind, status):
    response = client.post("/api/graph/encode", content=body, headers={"content-type": kind})
    assert response.status_code == status
    assert "\n" not in response.json()["error"]


def test_a_body_without_a_length_is_cut_at_the_limit(client):
    response = client.post("/api/graph/read?name=g.txt", content=(b"0 1\n" * 2**16 for _ in range(40)))
    assert response.status_code == 413


def test_wrong_methods_are_refused(client):
    assert client.get("/api/graph/encode").status_code == 405
    assert client.post("/api/about").status_code == 405


def test_results_are_listed_with_commands_and_tables(client):
    entries = {entry["name"]: entry for entry in client.get("/api/results").json()["results"]}
    assert set(entries) == {"figure-examples", "benchmark-eigen-gpu", "claims", "stored"}
    assert entries["stored"]["command"] == "python study.py --fast"
    assert entries["figure-examples"]["figures"] == [".svg"]
    assert entries["benchmark-eigen-gpu"]["command"] == "python benchmarks/eigen_gpu.py"
    table = client.get("/api/results/figure-examples").json()["tables"][1]
    assert table == {"title": "rows", "columns": ["graph", "edges"], "rows": [["sequence", 9], ["circle", 10]]}
    assert client.get("/api/figures/figure-examples.svg").headers["content-type"] == "image/svg+xml"


def test_every_result_of_the_clone_has_a_table_and_a_command_that_exists():
    clone = Path(__file__).parents[2]
    results = Results(clone / "results")
    for entry in results.listed():
        assert results.table(entry["name"])["tables"]
        program, script, *rest = entry["command"].split()
        if script.endswith(".py"):
            assert (clone / script).is_file(), entry["name"]
        elif program == "python":
            assert rest[0] == "tests.fuzz" or rest[1] in {*FIGURES, *TRAINED, *OWN}, entry["name"]


def test_without_a_folder_there_are_no_results():
    with TestClient(Explorer(workers=0).application(), base_url=HOST) as client:
        assert client.get("/api/results").json() == {"results": []}
        assert client.get("/api/results/claims").status_code == 404
        assert client.get("/api/file").status_code == 404


def test_the_file_of_the_command_line_is_opened():
    with TestClient(Explorer(workers=0, file=("g.txt", b"a b\n")).application(), base_url=HOST) as client:
        assert client.get("/api/about").json()["file"] == "g.txt"
        assert client.get("/api/file").json()["names"] == ["a", "b"]
    with TestClient(Explorer(workers=0, file=("g.py", b"def f(): pass\n")).application(), base_url=HOST) as client:
        assert client.get("/api/file").json() == {"source": "def f(): pass\n"}


def test_another_port_is_taken_if_one_is_not_free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with free_socket("127.0.0.1", port) as opened:
            assert opened.getsockname()[1] != port


@pytest.fixture(scope="module")
def guarded():
    """The application with a process of its own and tight limits."""
    limits = replace(Limits(), seconds=1.5, memory=2**29)
    with TestClient(Explorer(workers=1, limits=limits).application(), base_url=HOST) as client:
        assert client.post("/api/graph/encode", json={"graph": PATH}).status_code == 200
        yield client


def test_an_analysis_that_never_ends_is_stopped_and_the_server_goes_on(guarded):
    began = time.monotonic()
    response = guarded.post("/api/code/rewrite", json={"source": load.endless()})
    assert response.status_code == 422
    assert "took over 1.5 s" in response.json()["error"]
    assert time.monotonic() - began < 30
    assert guarded.post("/api/graph/encode", json={"graph": PATH}).status_code == 200


def test_a_process_that_dies_is_replaced(guarded):
    explorer = guarded.app.router.lifespan_context.__self__
    explorer.workers._idle.queue[0].process.kill()
    assert guarded.post("/api/graph/encode", json={"graph": PATH}).status_code == 422
    assert guarded.post("/api/graph/encode", json={"graph": PATH}).status_code == 200


def mixed(client: TestClient, number: int) -> int:
    """One of many requests, good and bad; returns its status."""
    kind = number % 10
    post = client.post
    if kind == 0:
        return post(
            "/api/graph/encode", content=b"[" * 10_000, headers={"content-type": "application/json"}
        ).status_code
    if kind == 1:
        return post("/api/graph/read?name=g.graphml", content=b"<!DOCTYPE a [<!ENTITY b 'c'>]><graphml/>").status_code
    if kind == 2:
        return client.get("/static/..%2f..%2fpyproject.toml").status_code
    if kind == 3:
        return client.get("/", headers={"host": "evil.example"}).status_code
    if kind == 4:
        return post("/api/graph/read?name=g.npz", content=b"PK\x03\x04" + bytes(1000)).status_code
    if kind == 5:
        return post(
            "/api/sorting/check", json={"length": 4, "comparators": [[0, 1], [2, 3], [number % 4, 9]]}
        ).status_code
    if kind == 6:
        return post("/api/code/graphs", json={"source": f"def f(a):\n    return a + {number}"}).status_code
    if kind == 7:
        return post("/api/sorting/check", json={"length": 4, "comparators": [[0, 1], [2, 3]]}).status_code
    if kind == 8:
        return client.get("/api/about").status_code
    return post("/api/graph/encode", json={"graph": PATH, "q": number % 100 / 100}).status_code


def storm(client: TestClient, count: int) -> None:
    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(lambda number: mixed(client, number), range(count)))
    for number, status in enumerate(statuses):
        assert status == 200 if number % 10 >= 6 else 400 <= status < 500, (number, status)


def test_a_mix_of_good_and_bad_requests_at_once(client):
    threads = threading.active_count()
    storm(client, 100)
    assert threading.active_count() <= threads + 60


@pytest.mark.slow
def test_a_zip_bomb_is_refused():
    with TestClient(Explorer(workers=1).application(), base_url=HOST) as client:
        response = client.post("/api/graph/read?name=g.npz", content=load.zip_bomb())
        assert 400 <= response.status_code < 500
        assert client.post("/api/graph/encode", json={"graph": PATH}).status_code == 200


@pytest.mark.slow
def test_a_thousand_requests_twenty_at_a_time():
    """No crash, no unexpected answer, no growing memory or number of files."""
    with load.server() as (process, port):
        for request in load.good(0).values():
            load.status_of(port, request)
        found = load.storm(process, port, 1000)
        assert found["unexpected"] == []
        assert load.status_of(port, load.good(0)["the page"]) == 200
        first, last = found["memory"][1], found["memory"][-1]
        assert last["server"] - first["server"] < 60
        assert last["workers"] - first["workers"] < 500
        assert last["files"] - first["files"] < 20


def test_the_requests_of_the_benchmark_get_the_answers_that_it_expects(client):
    """Those that need the limits of a worker are left to the slow tests."""
    kinds = load.good(1) | load.hostile()
    for name in {*kinds} - {"zip bomb", "endless analysis"}:
        method, path, body, headers, statuses = kinds[name]
        response = client.request(method, path, content=body, headers=dict(headers))
        assert response.status_code in statuses, (name, response.text[:200])
