"""Which language an answer goes out in."""

import pytest

from gateway.languages import Locale, accepted


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        ("", "fr"),
        ("en", "en"),
        ("en-GB,en;q=0.9", "en"),
        ("de, en;q=0.5, fr;q=0.8", "fr"),
        ("fr;q=0.2, en;q=0.7", "en"),
        ("de", "fr"),
        ("en;q=rubbish", "fr"),
        ("*", "fr"),
    ],
)
def test_the_language_that_weighs_most_wins(header: str, locale: Locale) -> None:
    assert accepted(header, "fr") == locale
