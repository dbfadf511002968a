import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import InvalidField
from services.treestore.paging import PageTokens

TOKENS = PageTokens([b"new key", b"old key"])
SCOPE = ("messages", "alice", "c1")


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_a_token_gives_its_position_back(position: str) -> None:
    assert TOKENS.decode(SCOPE, TOKENS.encode(SCOPE, position)) == position


@given(st.data())
def test_a_token_with_one_character_changed_is_refused(data: st.DataObject) -> None:
    token = TOKENS.encode(SCOPE, "42")
    index = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda character: character != token[index]))
    with pytest.raises(InvalidField) as refusal:
        TOKENS.decode(SCOPE, token[:index] + other + token[index + 1 :])
    assert refusal.value.name == "page_token"


@pytest.mark.parametrize("token", ["x", "é", "....", "A" * 10_000, "\n"])
def test_rubbish_is_refused(token: str) -> None:
    with pytest.raises(InvalidField):
        TOKENS.decode(SCOPE, token)


@pytest.mark.parametrize("scope", [("messages", "bob", "c1"), ("messages", "alice", "c2"), ("messages", "alicec1", "")])
def test_a_token_of_another_list_is_refused(scope: tuple[str, ...]) -> None:
    with pytest.raises(InvalidField):
        TOKENS.decode(scope, TOKENS.encode(SCOPE, "42"))


def test_a_token_outlives_a_new_first_key() -> None:
    before = PageTokens([b"old key"])
    assert TOKENS.decode(SCOPE, before.encode(SCOPE, "42")) == "42"
