"""A real Ray cluster of several processes on this machine, some of which are killed."""

import numpy as np
import pytest

import magnetite as mt
from benchmarks.timing import random_digraphs
from tests.workers.cluster import cluster, contents, finish, kill, shards, wait_until

ray = pytest.importorskip("ray")

OPTIONS = ("--k", "4", "--q", "0.1")


@pytest.fixture
def inputs(tmp_path):
    """Twelve files of graphs, which take some time to encode."""
    folder, rng = tmp_path / "in", np.random.default_rng(0)
    for number in range(12):
        random_digraphs(rng, 60, 90, 300).save(folder / f"{number:02d}.safetensors")
    return folder


def faults(started, address: str, inputs, tmp_path) -> None:
    """Encode on a cluster; a process and the driver are killed in between."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    command = ["encode", str(inputs), *OPTIONS, "--ray", address, "--out", str(out)]
    driver = started.run(*command)
    wait_until(lambda: shards(out) and started.workers(), driver)
    kill(started.workers()[0])
    before = len(shards(out))
    wait_until(lambda: len(shards(out)) > before, driver)
    driver.kill()
    driver.communicate()
    kept = shards(out)
    assert 1 < len(kept) < 12
    finish(started.run(*command))
    assert kept.items() <= shards(out).items()  # none of them was encoded again
    mt.encode_corpus(inputs, mt.MagneticLaplacian(k=4, q=0.1), whole, workers=1)
    assert contents(out) == contents(whole)


def test_killed_processes_and_drivers_change_nothing(inputs, tmp_path):
    with cluster() as (started, address):
        faults(started, address, inputs, tmp_path)
        projects = tmp_path / "projects"
        (projects / "shapes").mkdir(parents=True)
        source = "def area(a, b):\n    c = a * b\n    c = c / 2\n    return c\n"
        (projects / "shapes" / "triangles.py").write_text(source)
        functions = ["data", "functions", "--from", str(projects), "--workers", "1"]
        finish(started.run(*functions, "--ray", address, "--out", str(tmp_path / "functions-ray")))
    finish(started.run(*functions, "--out", str(tmp_path / "functions")))
    assert contents(tmp_path / "functions-ray") == contents(tmp_path / "functions")
    assert not started.processes()


def test_without_a_cluster_the_error_is_one_line(tmp_path):
    mt.Digraphs.from_edges([[0], [1]]).save(tmp_path / "in" / "a.safetensors")
    with pytest.raises(ValueError, match=r"no connection to the Ray cluster .*: start one with `ray start --head`"):
        mt.encode_corpus(tmp_path / "in", mt.Laplacian(k=2), tmp_path / "out", ray="127.0.0.1:1")
