"""The page keeps what its security policy and its users are promised."""

import re
from pathlib import Path

import pytest

import gateway

WEB = Path(gateway.__file__).parent / "web"
SCRIPTS = sorted(WEB.glob("*.js"))
PAGES = sorted(WEB.glob("*.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_has_no_inline_script_or_style(page: Path) -> None:
    html = page.read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_loads_only_files_that_are_there(page: Path) -> None:
    for target in re.findall(r'(?:src|href)="(/web/[^"]+)"', page.read_text()):
        assert (WEB / target.removeprefix("/web/")).is_file()


@pytest.mark.parametrize("file", [*PAGES, *SCRIPTS, *WEB.glob("*.css")], ids=lambda path: path.name)
def test_nothing_is_loaded_from_elsewhere(file: Path) -> None:
    assert not re.search(r"""(?:src|href)="https?:|url\(|@import|from "https?:""", file.read_text())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_never_makes_html_of_text(script: Path) -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script.read_text()
    )


def test_both_languages_have_the_same_texts() -> None:
    french, english = re.findall(r"^const (?:FR|EN) = \{\n(.*?)^\};", (WEB / "strings.js").read_text(), re.M | re.S)
    names = [re.findall(r"^  (\w+):", block, re.M) for block in (french, english)]
    assert names[0] == names[1]


def test_every_text_of_a_page_is_in_both_languages() -> None:
    known = set(re.findall(r"^  (\w+):", (WEB / "strings.js").read_text(), re.M))
    used = {name for page in PAGES for name in re.findall(r'data-(?:text|label|placeholder)="(\w+)"', page.read_text())}
    assert used - known == set()


def test_every_control_of_the_page_has_a_name() -> None:
    html = (WEB / "index.html").read_text()
    for name in re.findall(r'<textarea id="(\w+)"', html):
        assert f'for="{name}"' in html
    for button in re.findall(r"<button[^>]*>", html):
        assert "data-text" in button or "data-label" in button
