"""A place for data folders that PostgreSQL's own user can enter when the tests run as root."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of our own with a short path; gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="lintello-test-", dir="/tmp")).resolve()
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)
