"""Modules remember their arguments: they are described, made again, saved and loaded, your own included."""

import sys
import types

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.nn.encoders.base import Positions
from magnetite.nn.module import describe, rebuild, remade, unused

GRAPHS = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])


class Doubling(nn.Module):
    """A local network."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        return 2 * self.linear(states)


class NegativeHead(nn.GraphHead):
    """A head without a constructor of its own."""

    def forward(self, states: torch.Tensor, batch: Batch, positions: Positions) -> torch.Tensor:
        return -super().forward(states, batch, positions)


class DegreeEncoder(nn.PositionEncoder):
    """An encoder that reads the edges of the batch."""

    def __init__(self, width: int, scale: float = 2.0, **options: float):
        super().__init__()
        self.scale, self.linear = scale + options.get("more", 0.0), torch.nn.Linear(1, width)

    def encodings(self) -> dict:
        return {}

    def forward(self, batch: Batch) -> Positions:
        return Positions(nodes=self.linear(self.scale * batch.degrees()[:, None]))


class NumberNodes(nn.Embedding):
    """An embedding without a constructor."""

    def setup(self, width: int) -> None:
        self.vector = torch.nn.Parameter(torch.randn(width))

    def forward(self, batch: Batch) -> torch.Tensor:
        return batch.node_numbers()[:, None] * self.vector


class MeanModel(nn.GraphModel):
    """A model whose body adds the mean of each graph."""

    def body(self, states: torch.Tensor, batch: Batch, positions: Positions) -> torch.Tensor:
        return states + batch.per_node(batch.mean_nodes(states))


MODELS = {
    "parts": lambda: nn.DigraphTransformer(
        16, 2, NegativeHead(2), DegreeEncoder(16, more=1.0), NumberNodes(), local=Doubling(16)
    ),
    "lists": lambda: nn.DigraphTransformer(
        16, 1, nn.NodeHead(2), [DegreeEncoder(16), nn.SinusoidalEncoder(16)], [NumberNodes(), nn.SameNodes()]
    ),
    "model": lambda: MeanModel(16, nn.PairHead(), DegreeEncoder(16)),
}


@pytest.mark.parametrize("name", MODELS)
def test_modules_of_a_user_are_saved_and_loaded(name, tmp_path):
    model = MODELS[name]().eval()
    model.save(tmp_path)
    again = nn.load(tmp_path)
    assert type(again) is type(model)
    assert nn.describe(again) == nn.describe(model)
    torch.testing.assert_close(again(GRAPHS), model(GRAPHS), rtol=0, atol=0)


def test_a_class_that_is_not_imported_is_named(tmp_path):
    source = "from magnetite import nn\nclass ElsewhereHead(nn.GraphHead): pass"
    elsewhere = types.ModuleType("elsewhere")
    exec(source, elsewhere.__dict__)
    nn.DigraphTransformer(16, 1, elsewhere.ElsewhereHead(2)).save(tmp_path)
    del sys.modules["magnetite.nn.module"]._CLASSES["elsewhere:ElsewhereHead"]
    with pytest.raises(ValueError, match="no class 'elsewhere:ElsewhereHead': import the module that defines it"):
        nn.load(tmp_path)


def test_the_latest_class_of_a_name_is_saved(tmp_path):
    def defined() -> type[nn.GraphHead]:
        class RepeatedHead(nn.GraphHead):
            pass

        return RepeatedHead

    first, second = defined(), defined()
    with pytest.raises(TypeError, match=r"two classes are named .*RepeatedHead: rename one of them to save both"):
        nn.DigraphTransformer(16, 1, first(2)).save(tmp_path / "first")
    assert not (tmp_path / "first").exists()
    nn.DigraphTransformer(16, 1, second(2)).save(tmp_path / "second")
    assert type(nn.load(tmp_path / "second").head) is second


def test_a_class_with_a_name_of_magnetite_is_not_mistaken_for_it(tmp_path):
    own = type("NodeHead", (nn.NodeHead,), {"__module__": __name__})
    for kind in (own, nn.NodeHead):
        nn.DigraphTransformer(16, 1, kind(2)).save(tmp_path / kind.__module__)
        assert type(nn.load(tmp_path / kind.__module__).head) is kind


def test_arguments_that_json_cannot_hold_are_rejected(tmp_path):
    class Scaled(nn.GraphHead):
        def __init__(self, scale: torch.Tensor):
            super().__init__(2)

    with pytest.raises(TypeError, match=r"cannot be saved: use magnetite\.nn\.Module as base class, and plain values"):
        nn.DigraphTransformer(16, 1, Scaled(torch.ones(2))).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()

    class Several(nn.GraphHead):
        def __init__(self, *outputs: int):
            super().__init__(sum(outputs))

    with pytest.raises(TypeError, match=r"Several cannot be saved, because its constructor takes \*args"):
        nn.describe(Several(1, 2))


def test_arguments_are_kept_with_their_defaults():
    encoder = DegreeEncoder(4, more=1.0)
    assert encoder.arguments == {"width": 4, "scale": 2.0, "more": 1.0}
    assert nn.describe(encoder) == {"class": f"{__name__}:DegreeEncoder", "width": 4, "scale": 2.0, "more": 1.0}
    assert nn.rebuild(nn.describe(encoder)).scale == 3.0
    spectral = nn.MagLapNet(4, 16, mt.MagneticLaplacian(k=4, q=(0.1, mt.Relative(0.25))))
    assert nn.rebuild(nn.describe(spectral)).encoding == spectral.encoding


def test_remade_modules_have_parameters_of_their_own():
    network = nn.GNN(8, edge_features=[nn.LinearEdges(), nn.CategoryEdges({"kind": 3})])
    again = remade(network)
    assert [p.shape for p in again.parameters()] == [p.shape for p in network.parameters()]
    assert not {id(p) for p in again.parameters()} & {id(p) for p in network.parameters()}
    assert again.arguments["edge_features"][1].sizes == {"kind": (3,)}


def test_only_modules_without_parameters_are_unused():
    head = nn.GraphHead(2)
    assert unused(head) is head
    head.setup(8)
    with pytest.raises(ValueError, match="has parameters already: make a new one for each model"):
        unused(head)


def test_models_described_before_an_argument_existed_keep_its_value():
    """Eigenvectors were not scaled when SPE had no option for it."""
    described = describe(nn.SPE(4, width=8))
    assert described.pop("scaling") == "nodes"
    assert rebuild(described).arguments["scaling"] == "none"
