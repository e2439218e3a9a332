import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import grpc from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import { addReflection } from "./reflection.ts";

const SERVICE = IdempotencyService.typeName;

test.each(["v1", "v1alpha"])(
  "every type of the service can be resolved from what %s answers",
  async (version) => {
    const files = await filesWith(SERVICE, version);
    // Fails where an import is not among the files, or a type in none of a file's imports.
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...importsFirst(files)] }));
    const claim = registry.getService(SERVICE)?.method.claim;
    expect(claim?.input.fields.map((field) => field.name)).toEqual(
      IdempotencyService.method.claim.input.fields.map((field) => field.name),
    );
    expect(registry.getMessage("google.protobuf.Timestamp")).toBeDefined();
  },
);

test("files have the names and the imports that they have in proto/", async () => {
  const served = fileOf(SERVICE, await filesWith(SERVICE));
  expect(served.name).toBe("onceward/v1/idempotency.proto");
  expect(served.dependency).toEqual(IdempotencyService.file.proto.dependency);
});

test.each(["google.rpc.ErrorInfo", "google.rpc.BadRequest", "google.rpc.RetryInfo"])(
  "%s, a detail of errors, is known",
  async (symbol) => {
    expect((await filesWith(symbol)).map((file) => file.name)).toContain("google/rpc/error_details.proto");
  },
);

function fileOf(service: string, files: readonly FileDescriptorProto[]): FileDescriptorProto {
  const found = files.find((file) => file.service.some(({ name }) => `${file.package}.${name}` === service));
  if (found === undefined) throw new Error(`no file declares ${service}`);
  return found;
}

function importsFirst(files: readonly FileDescriptorProto[]): ReadonlySet<FileDescriptorProto> {
  const ordered = new Set<FileDescriptorProto>();
  const add = (file: FileDescriptorProto) => {
    for (const other of files) if (file.dependency.includes(other.name)) add(other);
    ordered.add(file);
  };
  files.forEach(add);
  return ordered;
}

/** The files that reflection answers for a symbol: the one that declares it, and its imports. */
async function filesWith(symbol: string, version = "v1"): Promise<readonly FileDescriptorProto[]> {
  const server = new grpc.Server();
  addReflection(server, [IdempotencyService]);
  onTestFinished(() => server.forceShutdown());
  const bind = Promise.withResolvers<number>();
  server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) =>
    error === null ? bind.resolve(port) : bind.reject(error),
  );
  const client = new grpc.Client(`127.0.0.1:${await bind.promise}`, grpc.credentials.createInsecure());
  onTestFinished(() => client.close());
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const call = client.makeBidiStreamRequest(path, encodeRequest, decodeResponse);
  call.end(symbol);
  const [files = []] = await call.toArray();
  return files;
}

// grpc/reflection/v1/reflection.proto: file_containing_symbol is field 4 of the request,
// file_descriptor_response field 4 of the response, and file_descriptor_proto field 1 of that.
function encodeRequest(symbol: string): Buffer {
  return Buffer.from(new BinaryWriter().tag(4, 2).string(symbol).finish());
}

function decodeResponse(bytes: Buffer): readonly FileDescriptorProto[] {
  const [files = new Uint8Array()] = bytesOfField(bytes, 4);
  return bytesOfField(files, 1).map((file) => fromBinary(FileDescriptorProtoSchema, file));
}

function bytesOfField(message: Uint8Array, number: number): readonly Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === number) found.push(reader.bytes());
    else reader.skip(wireType);
  }
  return found;
}
