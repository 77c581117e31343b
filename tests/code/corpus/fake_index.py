"""A package index on this machine, with packages that are damaged in every way."""

import io
import json
import tarfile
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HEADER = "package\tversion\tfile\tsha256\tbytes\tlicence\n"


def module(*names: str) -> str:
    """A module with one function of a different graph for each name."""
    body = "    total = values.{0}\n    for value in values:\n        total += value\n    return total\n"
    return "\n".join(f"def {name}(values):\n{body.format(name)}" for name in names)


@lru_cache
def bombs() -> tuple[bytes, bytes]:
    """A wheel and a source distribution that are a thousand times larger when they are unpacked."""
    zeros = bytes(20 * 2**20)
    files = {"tar_bomb-1.0/data.bin": zeros, "tar_bomb-1.0/a.py": module("boom")}
    return wheel({"bomb/code.py": zeros}), sdist(files)


def wheel(files: Mapping[str, str | bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def sdist(files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return content.getvalue()


def line(name: str, file: str, content: bytes, licence: str = "MIT") -> str:
    return f"{name}\t1.0\t{file}\t{sha256(content).hexdigest()}\t{len(content)}\t{licence}\n"


class FakeIndex:
    """Serves pages and files; `requests` counts what was asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, list[str]] = {}
        self.files: dict[str, list[bytes]] = {}
        self.requests: Counter[str] = Counter()
        self.secrets: set[str | None] = set()
        self.as_json = False
        self.url = ""

    def add(self, name: str, file: str, *answers: bytes) -> None:
        """Offer a file; the answers are given one after the other, the last one for ever."""
        self.pages.setdefault(name, []).append(file)
        self.files[file] = list(answers)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        kind, _, name = path.strip("/").rpartition("/")
        if kind == "simple" and name in self.pages:
            if self.as_json:
                entries = [{"filename": file, "url": f"../../files/{file}", "hashes": {}} for file in self.pages[name]]
                return 200, "application/vnd.pypi.simple.v1+json", json.dumps({"files": entries}).encode()
            anchors = "".join(f'<a href="../../files/{file}#egg=1">{file}</a>' for file in self.pages[name])
            return 200, "text/html", f"<html><body>{anchors}</body></html>".encode()
        if kind == "files" and name in self.files:
            answers = self.files[name]
            return 200, "application/octet-stream", answers.pop(0) if len(answers) > 1 else answers[0]
        return 404, "text/plain", b"nothing here"


@contextmanager
def served(index: FakeIndex) -> Iterator[FakeIndex]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.requests[self.path] += 1
            index.secrets.add(self.headers.get("Authorization"))
            code, kind, content = index.answer(self.path)
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def twenty_packages(index: FakeIndex, sentinel: Path) -> str:
    """Fill an index with 20 packages, and return a recipe that names them."""
    recipe = HEADER
    executed = f"open({str(sentinel)!r}, 'w').write('executed')\n"
    for number in range(9):
        name = f"good-{number}"
        code = module(f"read_item{number}", f"write_item{number}")
        if number % 3:
            file, content = f"good_{number}-1.0-py3-none-any.whl", wheel({f"good_{number}/code.py": code})
        else:
            file = f"good_{number}-1.0.tar.gz"
            files = {f"good_{number}-1.0/setup.py": executed, f"good_{number}-1.0/src/code.py": code}
            content = sdist({**files, f"good_{number}-1.0/pyproject.toml": "[build-system]\nbuild-backend='setup'\n"})
        index.add(name, file, content)
        recipe += line(name, file, content)

    def special(name: str, file: str, content: bytes, *answers: bytes, licence: str = "MIT") -> None:
        nonlocal recipe
        index.add(name, file, *(answers or (content,)))
        recipe += line(name, file, content, licence)

    fine = wheel({"pkg/code.py": module("load_table")})
    special("damaged", "damaged-1.0-py3-none-any.whl", fine, fine[:-10] + b"0123456789")
    special("truncated", "truncated-1.0-py3-none-any.whl", fine, fine[:50])
    special("too-long", "too_long-1.0-py3-none-any.whl", fine, fine + b"more")
    again = wheel({"pkg/code.py": module("parse_again")})
    special("second-time", "second_time-1.0-py3-none-any.whl", again, b"broken", again)
    recipe += line("vanished", "vanished-1.0-py3-none-any.whl", fine)
    index.pages["yanked"] = ["yanked-2.0-py3-none-any.whl"]
    recipe += line("yanked", "yanked-1.0-py3-none-any.whl", fine)
    zip_bomb, tar_bomb = bombs()
    special("zip-bomb", "zip_bomb-1.0-py3-none-any.whl", zip_bomb)
    special("tar-bomb", "tar_bomb-1.0.tar.gz", tar_bomb)
    climbing = {
        "../climbed.py": module("climb"),
        "/absolute.py": module("absolute"),
        "pkg/code.py": module("stay_here"),
    }
    special("climbing", "climbing-1.0-py3-none-any.whl", wheel({**climbing, "pkg\\windows.py": module("back")}))
    linked = sdist({"linked-1.0/code.py": module("follow")}, {"linked-1.0/passwords.py": "/etc/passwd"})
    special("linked", "linked-1.0.tar.gz", linked)
    special("program", "program-1.0.exe", b"MZ not an archive")
    special("not-zip", "not_zip-1.0-py3-none-any.whl", b"this is no zip file")
    special("copyleft", "copyleft-1.0-py3-none-any.whl", wheel({"pkg/code.py": module("share_alike")}), licence="GPL")
    return recipe
