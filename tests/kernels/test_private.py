"""Private folders: whose they are, what is removed from them, and that nothing else is."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from magnetite.kernels import private
from magnetite.kernels.private import PrivateFiles, cache_home, make_private


def files(home: Path, troubles: list[str], version: str = "1") -> PrivateFiles:
    return PrivateFiles(f"kernels-{version}", troubles.append, str(home))


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_folders_and_files_are_private_whatever_the_umask(tmp_path, umask):
    troubles: list[str] = []
    before = os.umask(umask)
    try:
        one = files(tmp_path / "cache", troubles)
        one.write("name", b"content")
    finally:
        os.umask(before)
    assert one.read("name") == b"content"
    assert not troubles
    made = [path for path in tmp_path.rglob("*") if path.name != "cache"]
    assert len(made) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)


def test_a_file_under_another_name_is_damaged(tmp_path):
    troubles: list[str] = []
    one = files(tmp_path, troubles)
    one.write("name", b"content")
    (one.folder() / "name.kernel").rename(one.folder() / "other.kernel")
    assert one.read("name") is None
    assert one.read("other") is None
    assert troubles == [f"{one.folder() / 'other.kernel'} is damaged"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: folder.chmod(0o770), "writable by other users"),
        (lambda folder: folder.chmod(0o707), "writable by other users"),
        (lambda folder: folder.parent.chmod(0o777), "writable by other users"),
        (lambda folder: folder.parent.parent.chmod(0o777), "writable by other users"),
        (lambda folder: (folder.rename(folder.parent / "x"), folder.symlink_to("x")), "not a folder"),
        (lambda folder: (folder.rename(folder.parent / "x"), folder.write_text("")), "not a folder"),
        (lambda folder: (folder.parent.rename(f"{folder.parent}x"), folder.parent.symlink_to("x")), "not a folder"),
    ],
)
def test_a_folder_that_others_could_have_filled_is_not_read(tmp_path, spoil, message):
    troubles: list[str] = []
    one = files(tmp_path / "home", troubles)
    one.write("name", b"content")
    spoil(one.folder())
    assert one.read("name") is None
    one.write("name", b"content")
    assert len(troubles) == 2
    assert message in troubles[0]


def test_a_folder_of_another_user_is_not_read(tmp_path, monkeypatch):
    troubles: list[str] = []
    one = files(tmp_path, troubles)
    one.write("name", b"content")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert one.read("name") is None
    assert "belongs to another user" in troubles[0]


def test_a_sticky_folder_may_be_shared(tmp_path):
    tmp_path.chmod(0o1777)
    make_private(tmp_path / "mine")
    tmp_path.chmod(0o700)


def test_the_cache_is_found_as_on_other_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_home() == tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_home() == Path("/home/someone/.cache")
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(OSError, match="no home"):
        cache_home()
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError()))
    with pytest.raises(OSError, match="no home"):
        cache_home()


def test_old_versions_are_removed_and_foreign_files_are_not(tmp_path):
    troubles: list[str] = []
    for number in range(private.KEPT_FOLDERS + 4):
        one = files(tmp_path, troubles, str(number))
        one.write("name", b"content")
        if number == 0:
            (one.folder() / "notes.txt").write_text("somebody's")
        os.utime(one.folder(), (number, number))
    home = tmp_path / "magnetite"
    (home / "others").mkdir()
    files(tmp_path, troubles, "new").write("name", b"content")
    left = {path.name for path in home.glob("kernels-*")}
    assert len(left) == private.KEPT_FOLDERS + 1
    assert {"kernels-new", "kernels-0", *(f"kernels-{number}" for number in range(5, 12))} == left
    assert (home / "others").exists()
    assert [path.name for path in (home / "kernels-0").iterdir()] == ["notes.txt"]
    assert not troubles


def test_what_a_killed_process_left_is_removed(tmp_path):
    one = files(tmp_path, [])
    for name, age in (("old", 2 * private.STALE_PART), ("new", 0)):
        path = one.folder() / f"{name}.part"
        path.write_bytes(b"")
        os.utime(path, (time.time() - age,) * 2)
    assert [path.name for path in files(tmp_path, []).folder().iterdir()] == ["new.part"]


MANY = """
import sys
from magnetite.kernels.private import PrivateFiles
troubles = []
one = PrivateFiles("kernels-1", troubles.append, sys.argv[1])
for _ in range(200):
    one.write("name", sys.argv[2].encode() * 10_000)
    assert one.read("name") in (b"a" * 10_000, b"b" * 10_000)
assert not troubles, troubles
"""


def test_processes_share_a_folder(tmp_path):
    command = [sys.executable, "-c", MANY, str(tmp_path)]
    started = [subprocess.Popen([*command, letter], stderr=subprocess.PIPE) for letter in "ab"]
    assert [(process.communicate()[1], process.returncode) for process in started] == [(b"", 0)] * 2
