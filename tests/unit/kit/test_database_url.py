"""A database URL that can't be used stops the start with one line."""

import pytest

from kit.database import Database
from kit.settings import BadSetting


@pytest.mark.parametrize("url", ["mysql://h/x", "nonsense", "", "postgresql://h:abc/x", "postgresql://[::1"])
def test_a_url_that_is_not_postgresqls_is_named_and_not_quoted(url: str) -> None:
    with pytest.raises(BadSetting) as refused:
        Database(url)
    assert str(refused.value).startswith("LINTELLO_DATABASE_URL: ")
    assert not url or url not in str(refused.value)
