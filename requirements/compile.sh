#!/bin/sh
# Rewrites the two hashed lock files from pyproject.toml, for every platform and Python at once.
# Needs uv: pip install uv.
set -eu
cd "$(dirname "$0")/.."
lock() {
    uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
        --python-version 3.11 "$@"
}
lock --extra dev pyproject.toml --output-file requirements/dev.txt
lock --extra all --extra build --constraint requirements/dev.txt pyproject.toml --output-file requirements/run.txt
