"""Claims a key, completes it and is answered with the result, knowing nothing of Onceward but its address.

    python3 claim.py HOST:PORT API_KEY

The messages come from server reflection, so this needs grpcio and protobuf, and no generated code. A project of its own
would rather generate stubs from proto/ with grpcio-tools.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TIMEOUT_S = 10
SERVICE = "onceward.v1.IdempotencyService"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


def message_class(pool, name):
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)  # protobuf before 4.22


def reflection_messages():
    """The little of grpc/reflection/v1/reflection.proto that is asked with and answered here."""
    file = descriptor_pb2.FileDescriptorProto(name="reflection.proto", package="r", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    request = file.message_type.add(name="Request")
    request.field.add(name="file_containing_symbol", number=4, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    files = file.message_type.add(name="Files")
    files.field.add(name="file_descriptor_proto", number=1, type=field.TYPE_BYTES, label=field.LABEL_REPEATED)
    response = file.message_type.add(name="Response")
    response.field.add(
        name="file_descriptor_response", number=4, type=field.TYPE_MESSAGE, type_name=".r.Files", label=field.LABEL_OPTIONAL
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_class(pool, "r.Request"), message_class(pool, "r.Response")


def reflect(channel, symbol):
    """A pool with the file that declares the symbol, and everything that it imports."""
    Request, Response = reflection_messages()
    ask = channel.stream_stream(REFLECTION, Request.SerializeToString, Response.FromString)
    (response,) = ask(iter([Request(file_containing_symbol=symbol)]), timeout=TIMEOUT_S)
    answered = map(descriptor_pb2.FileDescriptorProto.FromString, response.file_descriptor_response.file_descriptor_proto)
    files = {file.name: file for file in answered}
    pool = descriptor_pool.DescriptorPool()

    def add(name):
        if name not in files:
            return
        file = files.pop(name)
        for dependency in file.dependency:
            add(dependency)
        pool.Add(file)

    for name in list(files):
        add(name)
    return pool


def main(address, api_key):
    with grpc.insecure_channel(address) as channel:
        pool = reflect(channel, SERVICE)

        def call(method, **fields):
            rpc = pool.FindServiceByName(SERVICE).FindMethodByName(method)
            Request = message_class(pool, rpc.input_type.full_name)
            Response = message_class(pool, rpc.output_type.full_name)
            invoke = channel.unary_unary(f"/{SERVICE}/{method}", Request.SerializeToString, Response.FromString)
            metadata = [("authorization", f"Bearer {api_key}")]
            return invoke(Request(**fields), metadata=metadata, timeout=TIMEOUT_S)

        key = {"namespace": "charges", "key": "order-from-python"}
        result = {"kind": "KIND_SUCCESS", "payload": b'{"charge": "ch_1"}', "content_type": "application/json"}
        claimed = call("Claim", owner="claim.py", **key)
        call("Complete", fencing_token=claimed.claimed.fencing_token, result=result, **key)
        replayed = call("Claim", **key)
        print(
            json.dumps(
                {
                    "first": claimed.WhichOneof("outcome"),
                    "second": replayed.WhichOneof("outcome"),
                    "payload": replayed.completed.result.payload.decode(),
                    "contentType": replayed.completed.result.content_type,
                }
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
