"""A model as a folder: `model.json` describes the model, `model.safetensors` holds its parameters."""

from pathlib import Path
from typing import Any

import torch

from magnetite.io.storage import DamagedFile, read_json, read_tensors, write_json, write_tensors
from magnetite.nn.module import Module, describe, rebuild
from magnetite.version import __version__

FORMAT = 3
"""Version of the format; increased whenever older checkpoints can no longer be loaded."""


def save(model: Module, folder: str | Path) -> None:
    """Write both files, each atomically; the description is written last."""
    folder, description = Path(folder), describe(model)
    write_tensors(folder / "model.safetensors", model.state_dict(), {"kind": "model", "version": __version__})
    write_json(folder / "model.json", {"format": FORMAT, "version": __version__, "model": description})


def load(folder: str | Path, device: torch.device | str = "cpu") -> Any:
    """Build the model and load its parameters; an error names a parameter that does not fit."""
    folder = Path(folder)
    model = rebuild(_description(folder / "model.json")["model"])
    tensors, _ = read_tensors(folder / "model.safetensors")
    expected = model.state_dict()
    for name in [*expected, *tensors]:
        if name not in tensors or name not in expected or tensors[name].shape != expected[name].shape:
            raise DamagedFile(
                f"{folder}: parameter {name!r} does not fit the model that model.json describes: "
                "both files must come from the same save"
            )
    model.load_state_dict(tensors)
    return model.to(device)


def _description(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist: give the folder of a saved model (for a run, use magnetite.training.load)"
        )
    try:
        description = read_json(path, "description of a model", "save the model again")
        found = description["format"], description["version"]
    except KeyError as error:
        raise DamagedFile(f"{path} is not a valid description of a model ({error!r}): save the model again") from error
    if found[0] != FORMAT:
        raise ValueError(
            f"{path} was written by magnetite {found[1]} in format {found[0]}, this is {__version__} with format "
            f"{FORMAT}: install magnetite {found[1]} to load it"
        )
    return description
