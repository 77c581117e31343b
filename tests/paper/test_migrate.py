from magnetite.training.config import Config, configuration
from paper.migrate import migrated
from paper.playground import playground_cells

OLD = {
    "task": {"name": "playground", "target": "adjacency", "acyclic": True},
    "encoding": {"name": "magnetic", "k": 16, "q": 0.25, "potentials": 1, "sign": "mlp", "pair_steps": 0},
    "model": {"name": "transformer", "places": 0, "borders": 0, "pair_layer": True},
    "optim": {"lr": 4e-4, "batch": 384, "epochs": 30.0},
    "run": {"precision": "bf16-mixed", "evaluate_every": 3.0},
}


def test_an_old_configuration_is_that_of_its_cell():
    (cell,) = (cell for cell in playground_cells() if cell.name == "playground-adjacency-dag-magnetic-signnet")
    expected = configuration(cell.task, cell.encoding, cell.preset, cell.changes)
    assert migrated(OLD) == expected.to_dict()


def test_encodings_become_parts():
    walks = {"name": "relative-walks", "steps": 2, "restart": 0.0, "reverse": True, "nodes": True}
    found = migrated({**OLD, "encoding": {**walks, "pair_steps": 4, "pair_root": False}})["encoding"]
    assert list(found) == ["walks", "relative-walks", "pair-walks"]
    assert (found["walks"]["restart"], found["pair-walks"]["root"]) == (None, False)
    several = migrated({**OLD, "encoding": {"name": "magnetic", "k": 4, "q": 0.1, "potentials": 2}})
    assert Config.from_dict(several).to_dict()["encoding"]["magnetic"]["q"] == ["Relative(0.1)", "Relative(0.2)"]
