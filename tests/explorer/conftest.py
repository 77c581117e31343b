import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from magnetite.code import names
from magnetite.explorer.server import Explorer
from tests.code.tiny_namer import tiny_namer

HOST = "http://127.0.0.1:8000"


@pytest.fixture(scope="session")
def results(tmp_path_factory) -> Path:
    """A small folder of results, with a file beside it that must not be served."""
    folder = tmp_path_factory.mktemp("explore") / "results"
    folder.mkdir()
    (folder.parent / "secret.json").write_text('{"result": {"secret": 1}}')
    about = {"seed": 0, "commit": "abc", "device": "CPU", "date": "2026-01-01T00:00:00+00:00", "seconds": 1.0}
    for name, result in {
        "figure-examples": {"nodes": 10, "rows": [{"graph": "sequence", "edges": 9}, {"graph": "circle", "edges": 10}]},
        "benchmark-eigen-gpu": {"k": 16, "sides": {"ours": {"ms": 0.123456789}, "theirs": {"ms": 3}}},
        "claims": {"claims": {"1": {"text": "<script>alert(1)</script>", "parts": [1, [2]]}}},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps({"name": name, **about, "result": result}))
    stored = {"name": "stored", "command": "python study.py --fast", **about, "result": {"k": 1}}
    (folder / "stored.json").write_text(json.dumps(stored))
    (folder / "damaged.json").write_text("{")
    (folder / "figure-examples.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"></svg>')
    return folder


@pytest.fixture(scope="session")
def client(results) -> Iterator[TestClient]:
    """The application with its jobs in threads: fast to start, without limits of time."""
    with TestClient(Explorer(workers=0, results=results).application(), base_url=HOST) as opened:
        yield opened


@pytest.fixture
def shipped_namer(monkeypatch, tmp_path) -> Iterator[None]:
    """A small model in the place of the one that comes with magnetite."""
    tiny_namer(max_nodes=400).save(tmp_path / "namer")
    monkeypatch.setattr(names, "SHIPPED", tmp_path / "namer")
    names._loaded.cache_clear()
    yield
    names._loaded.cache_clear()
