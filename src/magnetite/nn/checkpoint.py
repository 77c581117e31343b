"""A model as a folder: `model.json` describes the model, `model.safetensors` holds its parameters."""

from pathlib import Path
from typing import Any

import torch

from magnetite.io.storage import (
    CHECKSUM,
    NEWER,
    DamagedFile,
    read_json,
    read_tensors,
    remove_leftovers,
    write_json,
    write_tensors,
)
from magnetite.nn.compressed import compress, expand
from magnetite.nn.module import Module, describe, rebuild
from magnetite.version import __version__

FORMAT = 4
"""Version of the format; increased whenever older checkpoints can no longer be loaded."""

DESCRIPTION, PARAMETERS = "model.json", "model.safetensors"
ADVICE = "save the model again, or copy the file back from a backup"


def save(model: Module, folder: str | Path, precision: str = "float32") -> str:
    """Write both files so that a process that is killed leaves the model that was there before, or the new one.

    The description holds the checksum of its parameters. New parameters are written beside the old ones, and take
    their place when the description that refers to them has been written.

    Args:
        model: The model.
        folder: Where to write.
        precision: How parameters are stored: float32, float16 or int8, see `compressed`.

    Returns:
        Checksum of the parameters.
    """
    folder, description = Path(folder), describe(model)
    beside = folder / f"{PARAMETERS}{NEWER}"
    tensors = write_tensors(beside, compress(model.state_dict(), precision), {"kind": "model", "version": __version__})
    content = {"format": FORMAT, "version": __version__, "parameters": tensors, "model": description}
    write_json(folder / DESCRIPTION, content)
    beside.replace(folder / PARAMETERS)
    remove_leftovers(folder)
    return tensors


def load(folder: str | Path, device: torch.device | str = "cpu") -> Any:
    """Build the model and load its parameters; an error names a parameter that does not fit."""
    folder = Path(folder)
    description = _description(folder / DESCRIPTION)
    tensors = _parameters(folder, description["parameters"])
    try:
        model = rebuild(description["model"])
        if not isinstance(model, Module):
            raise TypeError(f"it describes {model!r:.60}")
    except (TypeError, KeyError, AttributeError) as error:
        raise DamagedFile(
            f"{folder / DESCRIPTION} is not a valid description of a model ({error!r}): {ADVICE}"
        ) from error
    expected = model.state_dict()
    for name in [*expected, *tensors]:
        if name not in tensors or name not in expected or tensors[name].shape != expected[name].shape:
            raise DamagedFile(
                f"{folder}: parameter {name!r} does not fit the model that model.json describes: "
                "both files must come from the same save"
            )
    model.load_state_dict(tensors)
    return model.to(device)


def _parameters(folder: Path, expected: str) -> dict[str, torch.Tensor]:
    """The parameters with this checksum: in their place, or beside it if `save` was interrupted."""
    places = [folder / PARAMETERS, folder / f"{PARAMETERS}{NEWER}"]
    chosen = next((path for path in places if _stored_checksum(path) == expected), places[0])
    tensors, metadata = read_tensors(chosen)
    if metadata[CHECKSUM] != expected:
        raise DamagedFile(
            f"{chosen} does not fit the model that model.json describes: both files must come from the same save"
        )
    try:
        return expand(tensors)
    except (IndexError, RuntimeError) as error:
        raise DamagedFile(f"{chosen} has scales that do not fit its parameters ({error}): {ADVICE}") from error


def _stored_checksum(path: Path) -> str | None:
    try:
        return read_tensors(path, verify=False)[1].get(CHECKSUM)
    except (DamagedFile, FileNotFoundError):
        return None


def _description(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist: give the folder of a saved model (for a run, use magnetite.training.load)"
        )
    description = read_json(path, "description of a model", ADVICE)
    missing = {"format", "version", "parameters", "model"} - description.keys()
    if missing:
        raise DamagedFile(f"{path} is not a valid description of a model (it has no {min(missing)!r}): {ADVICE}")
    found = description["format"], description["version"]
    if found[0] != FORMAT:
        raise ValueError(
            f"{path} was written by magnetite {found[1]} in format {found[0]}, this is {__version__} with format "
            f"{FORMAT}: install magnetite {found[1]} to load it"
        )
    return description
