import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from magnetite.io import storage
from magnetite.io.storage import (
    DamagedFile,
    InUse,
    NotWritten,
    check_writable,
    complete_folder,
    foreign_files,
    locked,
    read_json,
    read_tensors,
    remove_leftovers,
    replacing,
    replacing_folder,
    write_json,
    write_tensors,
)

from ..kills import Killed, after_every_kill, killed_at


def read(path: Path) -> dict:
    return read_json(path, "note", "write it again")


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_tensors_are_read_as_they_were_written(tmp_path, dtype, shape):
    tensors = {"a": torch.randn(shape, dtype=dtype), "b": torch.randn(2, 2).double(), "c": torch.ones(1, dtype=dtype)}
    write_tensors(tmp_path / "a.safetensors", tensors, {"seed": "1"})
    found, metadata = read_tensors(tmp_path / "a.safetensors")
    assert metadata.keys() == {"seed", storage.CHECKSUM}
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_a_wrong_list_of_complex_tensors_is_damage(tmp_path):
    for listed in ('["b"]', '["a"]', "[", "3"):
        write_tensors(tmp_path / "a.safetensors", {"a": torch.ones(3)}, {storage.DOUBLES: listed})
        with pytest.raises(DamagedFile):
            read_tensors(tmp_path / "a.safetensors")


def test_equal_content_gives_equal_bytes(tmp_path):
    tensors = {name: torch.arange(5) for name in "fedcba"}
    metadata = {name: name for name in "uvwxyz"}
    for i in range(5):
        write_tensors(tmp_path / f"{i}", tensors, metadata)
    assert len({(tmp_path / f"{i}").read_bytes() for i in range(5)}) == 1
    found, kept = read_tensors(tmp_path / "0")
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert metadata.items() <= kept.items()


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "note.json"
    write_json(path, {"kept": True})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_json(path, object())
    with pytest.raises(RuntimeError), replacing(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_files_without_our_checksum_are_rejected(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(DamagedFile, match="foreign"):
        read_tensors(tmp_path / "foreign.safetensors")
    tensors, _ = read_tensors(tmp_path / "foreign.safetensors", verify=False)
    assert torch.equal(tensors["a"], torch.zeros(3))


@pytest.mark.parametrize("metadata", ["", "[]", "3", '{"a": 3}', '{"a": NaN}', "{", '{"a": "b", "a": "c"}'])
def test_foreign_metadata_are_rejected(tmp_path, metadata):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(3)}, tmp_path / "file", metadata={"magnetite": metadata})
    with pytest.raises(DamagedFile, match="file"):
        read_tensors(tmp_path / "file")


def test_metadata_are_part_of_the_checksum(tmp_path):
    path = tmp_path / "file"
    write_tensors(path, {"a": torch.zeros(3)}, {"seed": "1"})
    path.write_bytes(path.read_bytes().replace(b'seed\\": \\"1', b'seed\\": \\"2'))
    with pytest.raises(DamagedFile, match="does not match its checksum"):
        read_tensors(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_tensors(tmp_path / "nowhere.safetensors")


def test_permissions_follow_the_umask_and_those_of_a_file_are_kept(tmp_path):
    path, other = tmp_path / "ours.json", tmp_path / "plain"
    before = os.umask(0o027)
    try:
        write_json(path, {})
        other.touch()
    finally:
        os.umask(before)
    assert path.stat().st_mode == other.stat().st_mode
    for mode in (0o600, 0o664, 0o755):
        path.chmod(mode)
        write_json(path, {"mode": mode})
        write_tensors(other, {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "folder" / "target.json")
    for value in (1, 2):
        write_json(link, {"value": value})
        assert link.is_symlink()
        assert read(tmp_path / "folder" / "target.json") == {"value": value}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_device_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="not a regular file"):
        check_writable(pipe)
    with pytest.raises(NotWritten, match="not a regular file"):
        write_json(pipe, {})
    assert pipe.is_fifo()


def test_a_name_that_is_not_a_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotWritten, match=r"note.json could not be written \((Not a directory|File exists)\)"):
        write_json(tmp_path / "file" / "note.json", {})
    with pytest.raises(ValueError, match="cannot be written"):
        check_writable(tmp_path / "file" / "note.json")


FULL = """
import resource, signal, sys
from pathlib import Path
import torch
from magnetite.io import storage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Path(sys.argv[1])
def attempts():
    tensors = {"a": torch.zeros(100_000)}
    yield lambda: storage.write_json(folder / "a.json", {"a": "x" * 100_000})
    yield lambda: storage.write_tensors(folder / "a.safetensors", tensors, {})
    def save():
        with storage.replacing_folder(folder / "a") as part:
            storage.write_tensors(part / "b.safetensors", tensors, {})
    yield save
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for attempt in attempts():
    try:
        attempt()
    except OSError as error:
        print(error)
"""


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path):
    """A limit on the size of files stands for the full disk."""
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    for line, name in zip(lines, ("a.json", "a.safetensors", "a"), strict=True):
        assert line.startswith(f"{tmp_path / name} could not be written (")
        assert line.endswith("): free some space or choose another folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_json_has_no_infinities(tmp_path, value):
    with pytest.raises(ValueError, match=r"a.json cannot be written as JSON"):
        write_json(tmp_path / "a.json", {"a": [value]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1, "a": 1}', '{"a": {"b": 1, "b": 2}}'])
def test_json_is_strict(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DamagedFile, match=r"NaN|Infinity|twice"):
        read(tmp_path / "a.json")


def test_content_survives_json(tmp_path):
    content = {"ü": [1, 2.5e-300, -0.0, True, None, "\n"], 3: {"b": {}, "a": []}, "c": (1, 2)}
    write_json(tmp_path / "a.json", content)
    found = read(tmp_path / "a.json")
    assert found == json.loads(json.dumps(content))
    assert list(found) == ["ü", "3", "c"]
    with pytest.raises(TypeError, match="crc32"):
        write_json(tmp_path / "a.json", {"crc32": ""})
    with pytest.raises(ValueError, match="twice"):
        write_json(tmp_path / "a.json", {1: 1, "1": 2})


def test_no_flipped_bit_loads_as_other_content(tmp_path):
    content = {"step": 12, "loss": 0.5, "name": "walks", "nested": {"a": [1, 2, None, True]}}
    path = tmp_path / "a.json"
    write_json(path, content)
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert read(path) == content
        except DamagedFile as error:
            assert "write it again" in str(error)


def test_a_kill_leaves_the_old_or_the_new_file(tmp_path):
    folder = tmp_path / "folder"
    write_json(folder / "a.json", {"value": 1})
    found = []
    for whole in after_every_kill(lambda: write_json(folder / "a.json", {"value": 2}), folder):
        found.append(read(folder / "a.json")["value"])
        remove_leftovers(folder)  # of this process, which is not writing
        assert [path.name for path in folder.iterdir()] == ["a.json"]
        assert whole or len(found) < 100
    assert found == sorted(found) and set(found) == {1, 2}


def test_a_kill_leaves_the_old_or_the_new_folder(tmp_path):
    base = tmp_path / "base"
    path = base / "last"

    def save(value: int) -> None:
        with replacing_folder(path) as part:
            for name in "abc":
                write_json(part / f"{name}.json", {"value": value})

    def value() -> int:
        (found,) = {read(complete_folder(path) / f"{name}.json")["value"] for name in "abc"}
        return found

    save(1)
    seen = []
    for _ in after_every_kill(lambda: save(2), base):
        seen.append(value())
        save(3)  # whatever was left, the next one succeeds
        remove_leftovers(base)
        assert value() == 3 and [child.name for child in base.iterdir()] == ["last"]
    assert seen == sorted(seen) and set(seen) == {1, 2} and len(seen) > 20


def test_leftovers_of_killed_processes_are_removed_and_nothing_else(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    machine, other = storage._machine(), "00000000"
    gone = [f".magnetite-{machine}-{dead.pid}-01234567.json", f".magnetite-{machine}-{os.getpid()}-01234567"]
    kept = [
        f".magnetite-{machine}-{os.getppid()}-01234567",
        f".magnetite-{other}-{dead.pid}-01234567",
        ".magnetite-notes",
        ".train-00002-abc.safetensors",
        ".part-x",
        "a.json",
    ]
    for name in [*gone, *kept]:
        (tmp_path / name).touch()
    (tmp_path / f".magnetite-{machine}-{dead.pid}-89abcdef").mkdir()
    (tmp_path / f".magnetite-{machine}-{dead.pid}-89abcdef" / "model.json").touch()
    with replacing(tmp_path / "a.json") as part:
        part.write_text("new")
        remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(kept)
    os.utime(tmp_path / kept[1], (0, 0))  # of another machine, and old
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(kept) - {kept[1]}


def test_a_lock_is_held_by_one_process_and_names_it(tmp_path):
    path = tmp_path / "new" / ".magnetite.lock"
    with locked(path, "the folder"):
        assert foreign_files(path.parent) == []
        with pytest.raises(InUse, match=rf"the folder is in use by another process \(pid {os.getpid()}\): wait"):
            locked(path, "the folder").__enter__()
    assert list(path.parent.iterdir()) == []
    with locked(path, "the folder"):
        pass


HOLD = """
import sys, time
from pathlib import Path
from magnetite.io.storage import locked
with locked(Path(sys.argv[1]), "x"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    path = tmp_path / ".magnetite.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(InUse, match=f"pid {holder.pid}"):
        locked(path, "x").__enter__()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with locked(path, "x"):
        pass
    assert not path.exists()


COUNT = """
import sys
from pathlib import Path
from magnetite.io.storage import locked
folder = Path(sys.argv[1])
for _ in range(200):
    with locked(folder / "lock", "x", wait=True):
        number = int((folder / "number").read_text())
        (folder / "number").write_text(str(number + 1))
"""


def test_a_lock_that_is_removed_afterwards_excludes_all_who_wait(tmp_path):
    (tmp_path / "number").write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    workers = [subprocess.Popen(command) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert (tmp_path / "number").read_text() == "400"


def test_simulated_kills_stop_every_later_operation(tmp_path):
    with pytest.raises(Killed), killed_at(1):
        (tmp_path / "first").mkdir()
        (tmp_path / "second").mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["first"]


@pytest.mark.parametrize("name", [".magnetite.lock", ".magnetite-x.lock"])
@pytest.mark.parametrize("linked", [True, False])
def test_a_file_of_the_user_that_has_the_name_of_a_lock_is_left_alone(tmp_path, name, linked):
    thesis, folder = tmp_path / "thesis.tex", tmp_path / "out"
    folder.mkdir()
    thesis.write_text("ten years of work")
    if linked:
        (folder / name).symlink_to(thesis)
    else:
        (folder / name).write_text("ten years of work")
    remove_leftovers(folder)
    with pytest.raises(OSError, match="another file has the name of a lock"), locked(folder / name, "out"):
        pass
    assert (folder / name).read_text() == thesis.read_text() == "ten years of work"


@pytest.mark.parametrize("suffix", [".npz", ".png"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_may_lead_to_a_file_of_another_name(tmp_path, suffix, exists):
    link, target = tmp_path / f"out{suffix}", tmp_path / "blob"
    link.symlink_to(target)
    if exists:
        target.touch()
    with replacing(link) as part:
        assert part.suffix == suffix
        part.write_text("whole")
    assert link.is_symlink()
    assert target.read_text() == "whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blob", link.name]


def test_unfinished_files_of_this_process_stay_if_the_folder_is_given_by_another_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("real").mkdir()
    Path("link").symlink_to("real")
    with replacing(Path("link") / "note.txt") as part:
        part.write_text("whole")
        for folder in ("link", "real", "./real"):
            remove_leftovers(folder)
    assert Path("real/note.txt").read_text() == "whole"
