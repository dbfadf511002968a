"""With how many replicas a test runs: `site` is the stack it runs on."""

import pytest

ONE = pytest.param(1, id="one")
TWO = pytest.param(2, id="two")
TWO_SLOWLY = pytest.param(2, id="two", marks=pytest.mark.slow)

with_one_and_two = pytest.mark.parametrize("site", [ONE, TWO], indirect=True)
"""With one engine and gateway, and with two of each."""
with_one_or_slowly_two = pytest.mark.parametrize("site", [ONE, TWO_SLOWLY], indirect=True)
"""The same; with two in `make test-slow` only."""
with_two = pytest.mark.parametrize("site", [TWO], indirect=True)
"""What takes two engines and gateways."""
with_one = pytest.mark.parametrize("site", [ONE], indirect=True)
"""What is the same however many there are."""

REPLICAS = {1: {"engine": 1, "gateway": 1}, 2: {"engine": 2, "gateway": 2}}
