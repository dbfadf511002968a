"""`lintello serve`: one service in this process."""

import runpy

MODULES = {
    "engine": "services.engine.__main__",
    "treestore": "services.treestore.__main__",
    "quota": "services.quota.__main__",
    "gateway": "gateway.__main__",
}


def serve(service: str) -> None:
    """Run it as `python -m` would, until it is stopped."""
    runpy.run_module(MODULES[service], run_name="__main__", alter_sys=True)
