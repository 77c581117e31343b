import pytest
import torch

from magnetite.io.storage import DamagedFile, read_tensors, replacing, write_json, write_tensors


def test_equal_content_gives_equal_bytes(tmp_path):
    tensors = {name: torch.arange(5) for name in "fedcba"}
    metadata = {name: name for name in "uvwxyz"}
    for i in range(5):
        write_tensors(tmp_path / f"{i}", tensors, metadata)
    assert len({(tmp_path / f"{i}").read_bytes() for i in range(5)}) == 1
    read, kept = read_tensors(tmp_path / "0")
    assert all(torch.equal(read[name], tensors[name]) for name in tensors)
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


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_tensors(tmp_path / "nowhere.safetensors")


def test_permissions_follow_the_umask(tmp_path):
    write_json(tmp_path / "ours.json", {})
    (tmp_path / "plain").touch()
    assert (tmp_path / "ours.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
