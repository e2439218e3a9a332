import { create, createFileRegistry } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Health } from "../../../gen/grpc/health/v1/health_pb.ts";
import { IdempotencyService } from "../../../gen/onceward/v1/idempotency_pb.ts";
import { collectDescriptors } from "./reflection.ts";

const SERVICE = IdempotencyService.typeName;
const descriptors = collectDescriptors([IdempotencyService, Health]);

test.each([SERVICE, Health.typeName])(
  "every type of %s can be resolved from the files of its symbol",
  (service) => {
    const files = filesWith(service);
    // Fails where an import is not among the files, or a type in none of a file's imports.
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...importsFirst(files)] }));
    const methods = registry.getService(service)?.methods.map(({ name, input }) => [name, input.typeName]);
    expect(methods).toEqual(
      (service === SERVICE ? IdempotencyService : Health).methods.map(({ name, input }) => [
        name,
        input.typeName,
      ]),
    );
  },
);

test("an import that a file needs comes before it, a method is a symbol, and an unknown symbol has no file", () => {
  expect(filesWith(`${SERVICE}.Claim`).at(-1)).toBe(filesWith(SERVICE).at(-1));
  expect(filesWith(SERVICE).map(({ name }) => name)).toContain("google/protobuf/timestamp.proto");
  expect(descriptors.bySymbol("onceward.v1.Nothing")).toBeUndefined();
});

test("files have the names and the imports that they have in proto/", async () => {
  const served = fileOf(SERVICE, filesWith(SERVICE));
  expect(served.name).toBe("onceward/v1/idempotency.proto");
  expect(served.dependency).toEqual(IdempotencyService.file.proto.dependency);
});

test("health has the file that every gRPC library knows it by", () => {
  expect(fileOf(Health.typeName, filesWith(Health.typeName)).name).toBe("grpc/health/v1/health.proto");
});

test.each(["google.rpc.ErrorInfo", "google.rpc.BadRequest", "google.rpc.RetryInfo"])(
  "%s, a detail of errors, is known",
  async (symbol) => {
    expect(filesWith(symbol).map((file) => file.name)).toContain("google/rpc/error_details.proto");
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
function filesWith(symbol: string): readonly FileDescriptorProto[] {
  return (descriptors.bySymbol(symbol) ?? []).map(({ proto }) => proto);
}
