"""Download files of packages from the indexes that pip is configured for, without pip running any code of a package.

`pip download` runs the build code of source distributions. So pip is only asked for its settings, and the index is
read here: the simple repository API, in HTML (PEP 503) or JSON (PEP 691).
"""

import ast
import base64
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener, url2pathname

from magnetite.code.corpus.projects import normalised
from magnetite.code.corpus.recipe import Package
from magnetite.code.corpus.stored import file_hash
from magnetite.io.storage import replacing
from magnetite.version import __version__

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
ATTEMPTS = 3
"""How often a download is tried."""

PAUSE = 1.0
"""Seconds before the second attempt; they double with every attempt."""

PATIENCE = 3
"""Number of connections to an index that may fail in a row before it is not asked again."""

PAGE_BYTES = 64 * 2**20
PIECE = 2**18

GONE = "no longer in the index"
DAMAGED = "damaged download"
UNREACHABLE = "index unreachable"


T = TypeVar("T")


class Unavailable(Exception):
    """A package that could not be downloaded.

    Args:
        reason: `GONE`, `DAMAGED` or `UNREACHABLE`.
        details: What happened.
        again: Whether another attempt may succeed.
    """

    def __init__(self, reason: str, details: str, again: bool = False):
        super().__init__(f"{reason}: {details}")
        self.reason, self.details, self.again = reason, details, again


class Link(NamedTuple):
    """A file that an index offers."""

    file: str
    url: str
    sha256: str | None


@dataclass
class Index:
    """The indexes that pip is configured for.

    Args:
        indexes: URLs of indexes.
        links: Pages or folders with further files.
        cert: File of certificates; None for those of the system.
        proxy: URL of a proxy; None for the one in the environment.
        timeout: Seconds to wait for an answer.
        trusted: Hosts whose certificates are not verified.
        stopped: Set to end downloads early.
    """

    indexes: tuple[str, ...]
    links: tuple[str, ...] = ()
    cert: str | None = None
    proxy: str | None = None
    timeout: float = 15.0
    trusted: tuple[str, ...] = ()
    stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    _failures: dict[str, int] = field(default_factory=dict, repr=False)

    def fetch(self, package: Package, folder: Path) -> Path:
        """Download the file of a package, unless the folder has it; only a file with the right hash is kept.

        Args:
            package: The package.
            folder: Folder for the file.
        """
        path = folder / package.file
        if is_complete(path, package):
            return path
        folder.mkdir(parents=True, exist_ok=True)
        problem = Unavailable(GONE, f"no index offers {package.file}")
        for place in (*self.links, *self.indexes):
            try:
                link = self._offered(place, package)
                if link is None:
                    continue
                self._attempts(place, lambda link=link: self._download(link, package, path))
                return path
            except Unavailable as error:
                problem = error
        raise problem

    def _offered(self, place: str, package: Package) -> Link | None:
        """The link to the file in one index or page; None if it has none."""
        url = place if place in self.links else f"{place.rstrip('/')}/{normalised(package.package)}/"
        if place in self.links and (local := _local_path(url)) is not None and local.is_dir():
            file = local / package.file
            return Link(package.file, file.resolve().as_uri(), None) if file.is_file() else None
        if unquote(urlsplit(url).path).rpartition("/")[2] == package.file:
            return Link(package.file, url, None)
        found = [link for link in self._attempts(place, lambda: self._page(url)) if link.file == package.file]
        same = [link for link in found if link.sha256 == package.sha256]
        if found and not same and all(link.sha256 for link in found):
            raise Unavailable(DAMAGED, f"the index offers {package.file} with another sha256")
        return next(iter(same or found), None)

    def _page(self, url: str) -> list[Link]:
        local = _local_path(url)
        if local is not None:
            if local.is_dir():
                local, url = local / "index.html", f"{url.rstrip('/')}/index.html"
            return _links(local.read_bytes(), url, "text/html") if local.is_file() else []
        try:
            with _explained(url), self._open(url, ACCEPT) as answer:
                return _links(answer.read(PAGE_BYTES), answer.url, answer.headers.get_content_type())
        except Unavailable as error:
            if error.reason == GONE:
                return []
            raise

    def _download(self, link: Link, package: Package, path: Path) -> None:
        digest, size = sha256(), 0
        with replacing(path) as part, part.open("wb") as file:
            with closing(self._pieces(link.url)) as pieces:
                for piece in pieces:
                    size += len(piece)
                    if size > package.bytes:
                        raise Unavailable(DAMAGED, f"{package.file} has more than {package.bytes:,} bytes", True)
                    digest.update(piece)
                    file.write(piece)
            if size != package.bytes:
                raise Unavailable(DAMAGED, f"{package.file} has {size:,} instead of {package.bytes:,} bytes", True)
            if digest.hexdigest() != package.sha256:
                raise Unavailable(DAMAGED, f"{package.file} does not match its sha256", True)

    def _pieces(self, url: str) -> Generator[bytes, None, None]:
        with _explained(url), self._open(url) as answer:
            while piece := answer.read(PIECE):
                if self.stopped.is_set():
                    raise Unavailable(UNREACHABLE, "the download was interrupted")
                yield piece

    def _attempts(self, place: str, action: Callable[[], T]) -> T:
        """The result of an action; connections that fail and damaged downloads are tried again."""
        if self._failures.get(place, 0) >= PATIENCE:
            raise Unavailable(UNREACHABLE, f"{redacted(place)} did not answer {PATIENCE} times in a row")
        for attempt in range(ATTEMPTS):
            try:
                result = action()
                self._failures.pop(place, None)
                return result
            except Unavailable as error:
                last = not error.again or attempt + 1 == ATTEMPTS or _local_path(place) is not None
                if last or self.stopped.wait(PAUSE * 2**attempt):
                    if error.reason == UNREACHABLE:
                        self._failures[place] = self._failures.get(place, 0) + 1
                    raise
        raise AssertionError

    def _open(self, url: str, accept: str = "*/*") -> Any:
        clean, secret = _without_secret(url)
        request = Request(clean, headers={"Accept": accept, "User-Agent": f"magnetite/{__version__}"})
        if secret is None:  # files are often on the host of their index
            known = map(_without_secret, self.indexes)
            secret = next((other for index, other in known if urlsplit(index)[:2] == urlsplit(clean)[:2]), None)
        if secret:  # for this host only: not after a redirection
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(secret.encode()).decode()}")
        return self._opener(urlsplit(clean).hostname or "").open(request, timeout=self.timeout)

    def _opener(self, host: str) -> OpenerDirector:
        context = ssl.create_default_context(cafile=self.cert)
        if host in self.trusted:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        proxies = {"http": self.proxy, "https": self.proxy} if self.proxy else None
        return build_opener(HTTPSHandler(context=context), ProxyHandler(proxies))


def is_complete(path: Path, package: Package) -> bool:
    """Whether a file is the one that a recipe names.

    Args:
        path: The file, which may be missing.
        package: The package.
    """
    return path.is_file() and path.stat().st_size == package.bytes and file_hash(path) == package.sha256


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn errors of a connection into `Unavailable`."""
    place = redacted(url)
    try:
        yield
    except HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise Unavailable(GONE, f"{place} answers {error.code}") from error
        again = error.code >= 500 or error.code in (408, 429)
        raise Unavailable(UNREACHABLE, f"{place} answers {error.code} {error.reason}", again) from error
    except URLError as error:
        if isinstance(error.reason, FileNotFoundError) or _local_path(url) is not None:
            raise Unavailable(GONE, f"{place} does not exist") from error
        raise Unavailable(UNREACHABLE, f"{place} ({error.reason})", True) from error
    except (HTTPException, OSError) as error:
        raise Unavailable(UNREACHABLE, f"{place} ({str(error) or type(error).__name__})", True) from error


def pip_index() -> Index:
    """The indexes that pip uses here, according to its files of settings and the environment."""
    settings: dict[str, str] = {}
    lines = _pip("config", "list").splitlines()
    for section in ("global", "download", ":env:"):  # later ones override earlier ones, as in pip
        for line in lines:
            name, _, value = line.partition("=")
            if name.startswith(f"{section}."):
                settings[name.removeprefix(f"{section}.").lower().replace("_", "-")] = str(ast.literal_eval(value))
    indexes: list[str] = []
    if settings.get("no-index", "").lower() not in ("1", "true", "yes", "on"):
        indexes = [settings.get("index-url") or settings.get("pypi-url") or _default_index()]
        indexes += settings.get("extra-index-url", "").split()
    try:
        timeout = float(settings.get("timeout") or settings.get("default-timeout") or 15)
    except ValueError:
        timeout = 15.0
    return Index(
        tuple(dict.fromkeys(map(_as_url, indexes))),
        tuple(dict.fromkeys(map(_as_url, settings.get("find-links", "").split()))),
        settings.get("cert"),
        settings.get("proxy"),
        timeout,
        tuple(host.partition(":")[0] for host in settings.get("trusted-host", "").split()),
    )


def redacted(url: str) -> str:
    """A URL without user name and password, for messages."""
    return _without_secret(url)[0]


def _default_index() -> str:
    found = re.search(r"--index-url\b.*?\(default:?\s+([^\s)]+)\)", _pip("download", "--help"), re.DOTALL)
    if not found:
        raise ValueError("pip does not say which index it uses: set one with `pip config set global.index-url URL`")
    return found[1]


def _pip(*arguments: str) -> str:
    """What pip prints."""
    environment = {**os.environ, "COLUMNS": "500", "NO_COLOR": "1"}
    programs = [[sys.executable, "-m", "pip"], *([found] for name in ("pip", "pip3") if (found := shutil.which(name)))]
    for program in programs:
        done = subprocess.run([*program, *arguments], capture_output=True, text=True, env=environment, check=False)
        if done.returncode == 0:
            return done.stdout
    raise ValueError("pip is not installed or does not run, but its settings name the index: install pip")


def _as_url(place: str) -> str:
    """A URL as it is; a path as a file URL."""
    return place if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", place) else Path(place).expanduser().resolve().as_uri()


def _local_path(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


class _Anchors(HTMLParser):
    def __init__(self, base: str):
        super().__init__()
        self.base, self.found = base, []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if tag == "base" and target:
            self.base = urljoin(self.base, target)
        elif tag == "a" and target:
            self.found.append(urljoin(self.base, target))


def _links(content: bytes, url: str, kind: str) -> list[Link]:
    """The files that a page of an index lists; links to other schemes than its own are ignored."""
    if kind.endswith("json"):
        try:
            listed = json.loads(content)["files"]
            found = [(urljoin(url, entry["url"]), entry.get("hashes", {}).get("sha256")) for entry in listed]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Unavailable(UNREACHABLE, f"{redacted(url)} is not a page of an index ({error})") from error
    else:
        parser = _Anchors(url)
        parser.feed(content.decode("utf-8", "replace"))
        hashes = (re.search(r"(?:^|&)sha256=([0-9a-f]{64})", urlsplit(target).fragment) for target in parser.found)
        found = [(target, match[1] if match else None) for target, match in zip(parser.found, hashes, strict=True)]
    allowed = ("file",) if urlsplit(url).scheme == "file" else ("http", "https")
    return list(_allowed(found, allowed))


def _allowed(found: list[tuple[str, str | None]], schemes: tuple[str, ...]) -> Iterator[Link]:
    for target, digest in found:
        parts = urlsplit(target)
        if parts.scheme in schemes:
            yield Link(unquote(parts.path).rpartition("/")[2], urlunsplit(parts._replace(fragment="")), digest)


def _without_secret(url: str) -> tuple[str, str | None]:
    """A URL without the user and the password in it, and both."""
    parts = urlsplit(url)
    secret, at, host = parts.netloc.rpartition("@")
    return (urlunsplit(parts._replace(netloc=host)), unquote(secret)) if at else (url, None)
