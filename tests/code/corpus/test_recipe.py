import pytest

from magnetite.code.corpus.archives import READERS
from magnetite.code.corpus.projects import PERMISSIVE, licence_family
from magnetite.code.corpus.recipe import LEFT_OUT, read_recipe
from tests.code.corpus.fake_index import HEADER, line


def test_the_shipped_list():
    packages = read_recipe().packages
    assert len(packages) == 500
    assert all(package.file.endswith(tuple(READERS)) for package in packages)
    assert {package.package for package in packages} >= LEFT_OUT
    assert sum(package.licence in PERMISSIVE for package in packages) > 400


def test_a_choice():
    assert [package.package for package in read_recipe(only=["Click", "zope.interface"]).packages] == [
        "click",
        "zope-interface",
    ]
    with pytest.raises(ValueError, match="has no package 'no-such-thing'"):
        read_recipe(only=["no-such-thing"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected the columns"),
        ("package,version\n", "line 1: expected the columns"),
        (HEADER, "lists no packages"),
        (HEADER + "a\t1\n", "line 2: expected 6 cells separated by tabs, got 2"),
        (HEADER + line("a", "../a.whl", b""), "line 2: '../a.whl' is not the name of a file"),
        (HEADER + line("../a", "a.whl", b"x"), "line 2: '../a' is not the name of a package"),
        (HEADER + line("a", "a.whl", b"x").replace("\t1\t", "\t-1\t"), "line 2: bytes must be a positive integer"),
        (HEADER + "a\t1\ta.whl\t1234\t5\tMIT\n", "line 2: sha256 must have 64 hexadecimal digits"),
        (HEADER + line("a.b", "a.whl", b"x") + line("A_b", "b.whl", b"y"), "line 3: the package A_b is listed twice"),
        (HEADER + line("a", "a.whl", b"x", " "), "line 2: the licence is empty"),
    ],
)
def test_bad_recipes(tmp_path, text, message):
    path = tmp_path / "recipe.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_recipe(path)


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("Apache-2.0", "Apache"),
        ("BSD 3-Clause", "BSD"),
        ("License :: OSI Approved :: GNU General Public License v3 (GPLv3)", "GPL"),
        ("License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)", "LGPL"),
        ("LGPL-2.1-or-later", "LGPL"),
        ("MPL-2.0", "MPL"),
        ("permitted", "unknown"),
        ("proprietary", "unknown"),
    ],
)
def test_licences(text, family):
    assert licence_family(text) == family
