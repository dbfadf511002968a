"""Writes protos/gen from the .proto files: messages, services and their types.

Run by `make protos`. `python protos/generate.py DIR` writes into another folder, which is how a test
proves that the committed files are the generator's.
"""

import sys
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent


def generate(out: Path) -> None:
    """Write Python for every .proto into `out`, with a package marker in every folder.

    Raises SystemExit with the compiler's exit code when a file doesn't compile.
    """
    sources = sorted(str(path.relative_to(PROTOS)) for path in (PROTOS / "lintello").rglob("*.proto"))
    out.mkdir(parents=True, exist_ok=True)
    code = protoc.main(
        [
            "protoc",
            f"-I{PROTOS}",
            f"-I{resources.files('grpc_tools') / '_proto'}",
            f"--python_out={out}",
            f"--grpc_python_out={out}",
            f"--mypy_out=quiet:{out}",
            f"--mypy_grpc_out=quiet,only_async:{out}",
            *sources,
        ]
    )
    if code != 0:
        raise SystemExit(code)
    for folder in {parent for path in out.rglob("*_pb2.py") for parent in path.parents if out in parent.parents}:
        (folder / "__init__.py").touch()
        (folder / "__init__.pyi").touch()


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PROTOS / "gen")
