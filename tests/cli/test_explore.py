import pytest
from typer.testing import CliRunner

from magnetite.cli import app
from magnetite.cli.explore import _checked
from magnetite.explorer import server


@pytest.fixture
def served(monkeypatch):
    """The applications that would have been served, and the pages that would have been opened."""
    found = []

    def serve(explorer, listening, opened):
        with listening:
            found.append((explorer, listening.getsockname()))
            opened()

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(server, "LIBRARY", "app.js")  # the vendored one is there in an installed clone only
    monkeypatch.setattr("webbrowser.open", lambda address: found.append(address))
    return found


def test_it_listens_on_this_machine_only_and_opens_the_page(served):
    result = CliRunner().invoke(app, ["explore", "--port", "0"])
    assert result.exit_code == 0, result.output
    (explorer, (address, port)), opened = served
    assert address == "127.0.0.1"
    assert opened == f"http://127.0.0.1:{port}/"
    assert opened in result.output
    assert explorer.file is None


def test_no_browser(served, tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("a b\nb c\n")
    assert CliRunner().invoke(app, ["explore", str(path), "--port", "0", "--no-browser"]).exit_code == 0
    [(explorer, _)] = served
    assert explorer.file == ("g.txt", b"a b\nb c\n")


def test_source_opens_the_view_of_code(served, tmp_path):
    path = tmp_path / "g.py"
    path.write_text("def f(a):\n    return a\n")
    assert CliRunner().invoke(app, ["explore", str(path), "--port", "0"]).exit_code == 0
    assert served[1].endswith("#view=code")


def test_bad_files_are_refused_before_anything_is_served(served, tmp_path):
    (tmp_path / "bad.txt").write_text("1 2 3 4\n")
    (tmp_path / "long.py").write_text("x = 1\n" * 10_000)
    (tmp_path / "large.csv").write_bytes(b"0,1\n" * 2**21)
    for name in ("missing.txt", "missing.py", "bad.txt", "bad.exe", "long.py", "large.csv"):
        with pytest.raises((ValueError, OSError), match=name):
            _checked(tmp_path / name)
    assert CliRunner().invoke(app, ["explore", "--results", str(tmp_path / "none")]).exit_code
    assert not served


def test_a_clone_that_was_not_installed_says_what_to_do(served, monkeypatch):
    monkeypatch.setattr(server, "LIBRARY", "vendor/nothing.js")
    result = CliRunner().invoke(app, ["explore"])
    assert "pip install" in str(result.exception)
    assert not served
