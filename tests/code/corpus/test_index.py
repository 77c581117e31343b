import pytest

from magnetite.code.corpus import index as index_module
from magnetite.code.corpus.index import Index, Unavailable, pip_index
from magnetite.code.corpus.recipe import read_recipe
from tests.code.corpus.fake_index import HEADER, FakeIndex, line, served

CONTENT = b"a file of a package"


@pytest.fixture
def package(tmp_path):
    path = tmp_path / "recipe.tsv"
    path.write_text(HEADER + line("Some.Package", "some-1.0.whl", CONTENT))
    return read_recipe(path).packages[0]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(index_module, "PAUSE", 0.0)


@pytest.mark.parametrize("as_json", [False, True])
def test_html_and_json(package, tmp_path, as_json):
    with served(FakeIndex()) as fake:
        fake.as_json = as_json
        fake.add("some-package", "some-1.0.whl", CONTENT)
        path = Index((fake.url,)).fetch(package, tmp_path / "files")
        assert path.read_bytes() == CONTENT
        Index((fake.url,)).fetch(package, tmp_path / "files")
        assert fake.requests == {"/simple/some-package/": 1, "/files/some-1.0.whl": 1}


def test_several_indexes(package, tmp_path):
    with served(FakeIndex()) as empty, served(FakeIndex()) as fake:
        fake.add("some-package", "some-1.0.whl", CONTENT)
        assert Index((empty.url, fake.url)).fetch(package, tmp_path / "files").read_bytes() == CONTENT
        assert empty.requests == {"/simple/some-package/": 1}


@pytest.mark.parametrize("file", ["some-1.0.whl", "some-2.0.whl"])
def test_folders(package, tmp_path, file):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / file).write_bytes(CONTENT)
    (tmp_path / "simple" / "some-package").mkdir(parents=True)
    page = tmp_path / "simple" / "some-package" / "index.html"
    page.write_text(f"<a href='../../links/{file}'>a</a><a href='../../links/missing.whl'>b</a>")
    for index in (Index((), ((tmp_path / "links").as_uri(),)), Index(((tmp_path / "simple").as_uri(),))):
        if file == package.file:
            path = index.fetch(package, tmp_path / "files")
            assert path.read_bytes() == CONTENT
            path.unlink()
        else:
            with pytest.raises(Unavailable, match="no longer in the index"):
                index.fetch(package, tmp_path / "files")


def test_a_page_never_leads_to_local_files(package, tmp_path):
    secret = tmp_path / "some-1.0.whl"
    secret.write_bytes(CONTENT)
    with served(FakeIndex()) as fake:
        fake.answer = lambda _: (200, "text/html", f"<a href='{secret.as_uri()}'>x</a>".encode())
        with pytest.raises(Unavailable, match="no longer in the index"):
            Index((fake.url,)).fetch(package, tmp_path / "files")


def test_another_hash_in_the_index(package, tmp_path):
    with served(FakeIndex()) as fake:
        fake.answer = lambda _: (200, "text/html", f"<a href='some-1.0.whl#sha256={'0' * 64}'>x</a>".encode())
        with pytest.raises(Unavailable, match=r"offers some-1\.0\.whl with another sha256"):
            Index((fake.url,)).fetch(package, tmp_path / "files")


def test_an_index_that_is_not_there(package, tmp_path):
    index = Index(("http://127.0.0.1:9/simple",), timeout=2)
    for _ in range(index_module.PATIENCE):
        with pytest.raises(Unavailable, match=r"index unreachable: http://127\.0\.0\.1:9/simple.*refused"):
            index.fetch(package, tmp_path / "files")
    with pytest.raises(Unavailable, match="did not answer 3 times in a row"):
        index.fetch(package, tmp_path / "files")
    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.parametrize(("code", "attempts"), [(503, 3), (403, 1)])
def test_answers_that_are_errors(package, tmp_path, code, attempts):
    with served(FakeIndex()) as fake:
        fake.answer = lambda _: (code, "text/plain", b"")
        with pytest.raises(Unavailable, match=f"answers {code}"):
            Index((fake.url,)).fetch(package, tmp_path / "files")
        assert fake.requests.total() == attempts


def test_credentials_are_sent_but_not_shown(package, tmp_path):
    with served(FakeIndex()) as fake:
        url = fake.url.replace("//", "//user:password@")
        with pytest.raises(Unavailable) as error:
            fake.answer = lambda _: (403, "text/plain", b"")
            Index((url,)).fetch(package, tmp_path / "files")
        assert "password" not in str(error.value)
        assert fake.secrets == {"Basic dXNlcjpwYXNzd29yZA=="}


def test_settings_of_pip(monkeypatch, tmp_path):
    for name in (
        "PIP_FIND_LINKS",
        "PIP_EXTRA_INDEX_URL",
        "PIP_NO_INDEX",
        "PIP_CERT",
        "PIP_DEFAULT_TIMEOUT",
        "PIP_INDEX_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = http://one/simple\nextra-index-url = http://two/simple\n  http://three/simple\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_INDEX_URL", "http://four/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_TIMEOUT", "7")
    index = pip_index()
    assert index.indexes[0] == "http://four/simple"
    assert {"http://two/simple", "http://three/simple"} <= set(index.indexes)
    assert index.links == (tmp_path.as_uri(),)
    assert index.timeout == 7


def test_the_default_of_pip():
    assert index_module._default_index().startswith("http")
