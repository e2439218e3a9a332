"""Writes the messages and stubs of the service, src/onceward/v1, from proto/.

Run it where grpcio-tools 1.76.0 is installed: its code needs protobuf 6.31 or later, as pyproject.toml says,
and its stubs grpcio 1.76. The client makes its calls without stubs, so that it takes earlier versions, too.
"""

from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).parent
PROTO = HERE.parent.parent / "proto"
SOURCE = HERE / "src"
SERVICE = "idempotency.proto"
FILES = ["errors.proto", "facts.proto", SERVICE, "policy.proto", "record.proto"]


def generate(*outputs: str, files: list[str]) -> int:
    """Generates code of files. Returns the generator's exit code."""
    includes = [PROTO, Path(protoc.__file__).parent / "_proto"]
    return protoc.main(
        [
            "protoc",
            *[f"--proto_path={folder}" for folder in includes],
            *[f"--{output}={SOURCE}" for output in outputs],
            *[f"onceward/v1/{file}" for file in files],
        ]
    )


if __name__ == "__main__":
    code = generate("python_out", "pyi_out", files=FILES) or generate("grpc_python_out", files=[SERVICE])
    (SOURCE / "onceward" / "v1" / "__init__.py").write_text(
        '"""The messages and stubs of onceward.v1, written by generate.py."""\n'
    )
    raise SystemExit(code)
