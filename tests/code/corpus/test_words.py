import pytest

from magnetite.code.corpus import words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("get_value", ["get", "value"]),
        ("getValue", ["get", "value"]),
        ("GetHTTPResponse", ["get", "http", "response"]),
        ("_private__name_", ["private", "name"]),
        ("base64_decode", ["base64", "decode"]),
        ("to2D", ["to2", "d"]),
        ("HTTP", ["http"]),
        ("x", ["x"]),
        ("_", []),
        ("größeÄndern", ["größe", "ändern"]),
        ("名前", ["名前"]),
    ],
)
def test_words(name, words):
    assert words_of(name) == words
