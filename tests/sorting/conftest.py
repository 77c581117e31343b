import pytest

from magnetite.sorting import SortingNetworks, generate


@pytest.fixture(scope="module")
def networks() -> SortingNetworks:
    return generate(3000, lengths=range(7, 12), seed=0)
