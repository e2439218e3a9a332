"""Writes the messages of the service, src/onceward/v1, from proto/.

Run it where grpcio-tools 1.76.0 is installed: its code needs protobuf 6.31 or later, as pyproject.toml says.
Calls are made without stubs, so that the package does not depend on the version of grpcio's generator.
"""

from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).parent
PROTO = HERE.parent.parent / "proto"
SOURCE = HERE / "src"
FILES = ["errors.proto", "idempotency.proto", "record.proto"]

if __name__ == "__main__":
    code = protoc.main(
        [
            "protoc",
            f"--proto_path={PROTO}",
            f"--proto_path={Path(protoc.__file__).parent / '_proto'}",
            f"--python_out={SOURCE}",
            f"--pyi_out={SOURCE}",
            *[f"onceward/v1/{file}" for file in FILES],
        ]
    )
    (SOURCE / "onceward" / "v1" / "__init__.py").write_text(
        '"""The messages of onceward.v1, written by generate.py."""\n'
    )
    raise SystemExit(code)
