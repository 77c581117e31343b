import zipfile
from contextlib import suppress

import pytest

from magnetite.code.corpus import archives
from magnetite.code.corpus.archives import BadArchive, python_files
from tests.code.corpus.fake_index import sdist, wheel


def members(tmp_path, content: bytes, name: str = "a-1.0-py3-none-any.whl"):
    path = tmp_path / name
    path.write_bytes(content)
    return {member.path: member.problem or member.content for member in python_files(path)}


def test_python_files_only(tmp_path):
    files = {"pkg/b.py": "b", "pkg/a.py": "a", "pkg/data.bin": "x", "pkg/tests/c.py": "c"}
    assert members(tmp_path, wheel(files)) == {"pkg/a.py": b"a", "pkg/b.py": b"b", "pkg/tests/c.py": "test file"}
    unpacked = {f"pkg-1.0/{name}": text for name, text in files.items()}
    assert members(tmp_path, sdist(unpacked), "pkg-1.0.tar.gz") == members(tmp_path, wheel(files))


@pytest.mark.parametrize("name", ["../x.py", "a/../../x.py", "/x.py", "C:/x.py", "a\\x.py", "a\nb/x.py"])
@pytest.mark.parametrize("kind", ["whl", "tar.gz"])
def test_unsafe_names(tmp_path, name, kind):
    content = (wheel if kind == "whl" else sdist)({name: "x", "good.py": "g"})
    found = members(tmp_path, content, f"a.{kind}")
    assert found.pop("good.py") == b"g"
    assert list(found.values()) == ["unsafe name in the archive"]


def test_links(tmp_path):
    assert members(tmp_path, sdist({"a.py": "a"}, {"b.py": "a.py", "c.py": "/etc/passwd"}), "a.tar.gz") == {
        "a.py": b"a",
        "b.py": "link",
        "c.py": "link",
    }
    path = tmp_path / "link.whl"
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("b.py")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    assert [member.problem for member in python_files(path)] == ["link"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_twice(tmp_path):
    path = tmp_path / "twice.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.py", "old")
        archive.writestr("a.py", "new")
    assert [member.content for member in python_files(path)] == [None, b"new"]


def test_large_files(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_FILE", 100)
    files = {"a.py": "x = 1\n" * 20, "b.py": "x = 1\n"}
    expected = {"a.py": "file larger than 4 MiB", "b.py": b"x = 1\n"}
    assert members(tmp_path, wheel(files)) == expected
    assert members(tmp_path, sdist(files), "a.tar.gz") == expected


def test_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "SMALL", 2**16)
    zeros = bytes(2**20)
    for content, name in ((wheel({"a.bin": zeros}), "a.whl"), (sdist({"a.bin": zeros}), "a.tar.gz")):
        with pytest.raises(BadArchive, match="decompression bomb"):
            members(tmp_path, content, name)


def test_a_zip_file_that_understates_its_sizes(tmp_path):
    content = wheel({"a.py": bytes(2**20)})
    size = (2**20).to_bytes(4, "little")
    assert content.count(size) == 2
    with pytest.raises(BadArchive, match=r"not a valid \.whl archive"):
        members(tmp_path, content.replace(size, (10).to_bytes(4, "little")))


@pytest.mark.parametrize("name", ["a.exe", "a.egg", "a", "a.py", "a.rar"])
def test_other_extensions(tmp_path, name):
    with pytest.raises(BadArchive, match="its name does not end with one of"):
        members(tmp_path, wheel({"a.py": "a"}), name)


@pytest.mark.parametrize("name", [f"a{suffix}" for suffix in archives.READERS])
def test_damaged_archives(tmp_path, name):
    with pytest.raises(BadArchive, match="it is not a valid"):
        members(tmp_path, b"something else " * 100, name)
    whole = wheel({"a.py": "x = 1\n" * 100}) if name.endswith(("whl", "zip")) else sdist({"a.py": "x = 1\n" * 100})
    for size in range(1, len(whole), 7):
        with pytest.raises(BadArchive):
            members(tmp_path, whole[:size], name)


def test_flipped_bytes_never_escape(tmp_path):
    for make, name in ((wheel, "a.whl"), (sdist, "a.tar.gz")):
        whole = make({"pkg/a.py": "x = 1\n" * 50, "pkg/b.py": "y = 2\n"})
        for at in range(0, len(whole), 2):
            changed = whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]
            with suppress(BadArchive):
                members(tmp_path, changed, name)
