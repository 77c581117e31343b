"""Add checksums to results of earlier versions, which had none: `python -m paper.migrate results`.

If you have no old results, you can ignore this file.
"""

import json
import sys
from pathlib import Path

from magnetite.io.storage import CHECKSUM, write_json


def migrate(folder: Path) -> int:
    """Write every JSON file in a folder that has no checksum once more, with one; returns their number."""
    old = {path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.json"))}
    for path, content in old.items():
        if CHECKSUM not in content:
            write_json(path, content)
    return sum(CHECKSUM not in content for content in old.values())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {migrate(Path(name))} results migrated")  # noqa: T201
