"""Rewrite results of earlier versions to the present format of configurations: `python -m paper.migrate results`.

Files are renamed to the new hashes. If you have no old results, you can ignore this file.
"""

import re
import sys
from pathlib import Path
from typing import Any

from magnetite.io.record import read_record
from magnetite.io.storage import write_json
from magnetite.training.config import Config

EIGENPAIRS = ("k", "sign", "scaling", "attention", "dropout")
WALKS = ("steps", "restart", "reverse")
OPTIONS = {"magnetic": EIGENPAIRS, "laplacian": EIGENPAIRS, "walks": WALKS, "relative-walks": WALKS, "svd": ("k",)}
"""Options of the old encodings that keep their meaning."""


def migrated(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The tables of an old configuration, in the present format."""
    task, model = dict(tables["task"]), dict(tables["model"])
    task["name"] = "distances" if task["name"] == "playground" else task["name"]
    moved = ("pair_layer",) if task["name"] == "distances" else ("places", "borders")
    for option in ("pair_layer", "places", "borders"):
        if option in model:
            value = model.pop(option)
            task |= {option: value} if option in moved else {}
    new = {**tables, "task": task, "model": model, "encoding": _encodings(tables["encoding"])}
    return Config.from_dict(new).to_dict()


def _encodings(old: dict[str, Any]) -> dict[str, dict[str, Any]]:
    name = old["name"]
    if name not in OPTIONS and name != "none":
        raise ValueError(f"results with the encoding {name!r} cannot be migrated: train them again")
    options = {option: old[option] for option in OPTIONS.get(name, ()) if option in old}
    if options.get("restart") == 0:
        options["restart"] = None
    if name == "magnetic":
        potentials = [f"Relative({old['q'] * number!r})" for number in range(1, old.get("potentials", 1) + 1)]
        options["q"] = potentials if len(potentials) > 1 else potentials[0]
    if name == "svd":
        options = {"rank": options["k"]}
    parts = {} if name == "none" else {name: options}
    if name == "relative-walks" and old["nodes"]:
        parts = {"walks": options, **parts}
    if old.get("pair_steps", 0):
        parts["pair-walks"] = {"steps": old["pair_steps"], "root": old["pair_root"]}
    return parts


def migrate(folder: Path) -> dict[str, str]:
    """Rewrite all results in a folder, and rename those whose names end in a hash; returns new hashes by old ones."""
    hashes = {}
    for path in sorted(folder.rglob("cells/*.json")) + sorted(folder.glob("run-*.json")):
        content = read_record(path)
        result = content["result"]
        if "name" not in result["config"]["encoding"]:
            continue  # it is in the new format
        old, config = result["hash"], migrated(result["config"])
        hashes[old] = Config.from_dict(config).hash
        result |= {"config": config, "hash": hashes[old]}
        new = path.with_name(path.name.replace(old, hashes[old]))
        write_json(new, content)
        if new != path:
            path.unlink()
    for path in sorted(folder.glob("*.json")):  # figures list the hashes of their cells
        text = path.read_text(encoding="utf-8")
        renamed = re.sub(r'(?<="hash": ")\w+', lambda found: hashes.get(found[0], found[0]), text)
        if renamed != text:
            path.write_text(renamed, encoding="utf-8")
    return hashes


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {len(migrate(Path(name)))} results migrated")  # noqa: T201
