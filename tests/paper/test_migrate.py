import json

import pytest

from magnetite.io.record import read_record
from magnetite.io.storage import DamagedFile
from paper.migrate import migrate


def test_results_without_a_checksum_get_one(tmp_path):
    content = {"name": "old", "result": {"f1": [0.5, None], "ü": 1e-30}}
    path = tmp_path / "cells" / "old.json"
    path.parent.mkdir()
    path.write_text(json.dumps(content))
    with pytest.raises(DamagedFile, match="has no checksum"):
        read_record(path)
    assert migrate(tmp_path) == 1
    assert read_record(path) == content
    assert migrate(tmp_path) == 0
