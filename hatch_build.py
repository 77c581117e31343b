"""Build hook: puts the graph library of the explorer, which a package of the registry carries, beside its page."""

from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARRIER = "pyvis"
"""Package of the registry, named in `build-system.requires`, that carries the library as its authors built it."""

CARRIED = "pyvis/lib/vis-9.1.2/vis-network.min.js"
"""The library within it: vis-network, Apache-2.0 or MIT; its licence is in its first lines."""

TARGET = "src/magnetite/explorer/static/vendor/vis-network.min.js"


class Vendor(BuildHookInterface):
    """Copies the library before a wheel or an editable install is made; it is not kept in git."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Copy the library, unless a source distribution has brought it along."""
        target = Path(self.root) / TARGET
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(Path(str(distribution(CARRIER).locate_file(CARRIED))).read_bytes())
        build_data["artifacts"].append(TARGET)
