import os
import sysconfig

import pytest

from magnetite.code.corpus.projects import content_key, folder_projects, site_packages, standard_library
from tests.code.corpus.fake_index import module


def found(project) -> dict[str, bytes | str | None]:
    return {member.path: member.problem or member.content for member in project.read()}


def test_unusual_files_are_counted_and_never_opened(tmp_path):
    root = tmp_path / "project"
    (root / ".hidden").mkdir(parents=True)
    (root / "__pycache__").mkdir()
    for name in ("a.py", ".hidden/b.py", "__pycache__/c.py", "data.txt", "large.py", "folder.py/d.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x = 1")
    (root / "large.py").write_bytes(b"#" * (4 * 2**20 + 1))
    (root / "link.py").symlink_to("a.py")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "pipe.py")
    (project,) = folder_projects(tmp_path)
    assert found(project) == {
        "project/a.py": b"x = 1",
        "project/.hidden/b.py": "hidden file or folder",
        "project/large.py": "file larger than 4 MiB",
        "project/folder.py/d.py": b"x = 1",
        "project/link.py": "link",
        "project/loop": "link",
        "project/pipe.py": "not a regular file",
    }


def test_the_key_is_that_of_the_content(tmp_path):
    (tmp_path / "project").mkdir()
    file = tmp_path / "project" / "a.py"
    file.write_text("x = 1")
    (project,) = folder_projects(tmp_path)
    before = content_key(project.read())
    assert content_key(project.read()) == before
    file.write_text("x = 2")
    assert content_key(project.read()) != before


def test_installed_packages(tmp_path, monkeypatch):
    for name, licence in (("One_Package", "License: MIT"), ("other", "License-Expression: GPL-3.0-only")):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{licence}\n")
        (info / "RECORD").write_text(f"{name}/code.py,,\n{name}_extra.py,,\n../../bin/tool.py,,\n")
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").write_text(module("run_it"))
        (tmp_path / f"{name}_extra.py").write_text("")
    (tmp_path / "stray.py").write_text("")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    projects = {project.name: project for project in site_packages()}
    assert {name: project.licence for name, project in projects.items()} == {
        "one-package": "MIT",
        "other": "GPL",
        "stray": "unknown",
    }
    assert list(found(projects["one-package"])) == ["One_Package/code.py", "One_Package_extra.py"]


def test_the_standard_library():
    projects = {project.name: project for project in standard_library()}
    assert {"stdlib.json", "stdlib.asyncio", "stdlib.textwrap"} <= projects.keys()
    assert not [name for name in projects if "site-packages" in name]
    assert "json/decoder.py" in found(projects["stdlib.json"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read every file")
def test_unreadable_files(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "a.py").chmod(0)
    (project,) = folder_projects(tmp_path)
    assert found(project) == {"a.py": "file cannot be read"}
