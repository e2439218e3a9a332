import { type DescFile, type DescService, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { service as health } from "grpc-health-check";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.ts";

/**
 * Adds grpc.reflection.v1 and v1alpha, from which clients without .proto files learn the schema, with the
 * details of errors.
 */
export function addReflection(server: Server, services: readonly DescService[]): void {
  const files = new Set<DescFile>();
  for (const service of services) collect(service.file, files);
  collect(file_google_rpc_error_details, files);
  // ReflectionService reads only the files of a package definition. They are passed as they were compiled:
  // files that proto-loader creates have no imports, and clients that link them, such as grpcurl, can't
  // resolve any type.
  const fileDescriptorProtos = Array.from(files, ({ proto }) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, proto)),
  );
  const definition = { files: { fileDescriptorProtos: [...fileDescriptorProtos, ...healthFiles()] } };
  new ReflectionService(definition as unknown as PackageDefinition, {
    services: [...new Set(services.map((service) => service.typeName)), HEALTH],
  }).addToServer(server);
}

const HEALTH = "grpc.health.v1.Health";

/**
 * Returns the files of health as proto-loader read them, with fully qualified type names, which clients need
 * to find the types.
 */
function healthFiles(): readonly Buffer[] {
  const { requestType } = health.Check as unknown as MethodOfProtoLoader;
  return requestType.fileDescriptorProtos.map((bytes) => {
    const file = fromBinary(FileDescriptorProtoSchema, bytes);
    const names = typeNames(file.messageType, `.${file.package}`);
    const rooted = (name: string) => names.get(name) ?? name;
    for (const message of file.messageType) {
      for (const field of message.field) field.typeName = rooted(field.typeName);
      for (const entry of message.nestedType)
        for (const field of entry.field) field.typeName = rooted(field.typeName);
    }
    for (const method of file.service.flatMap((service) => service.method)) {
      method.inputType = rooted(method.inputType);
      method.outputType = rooted(method.outputType);
    }
    return Buffer.from(toBinary(FileDescriptorProtoSchema, file));
  });
}

interface MethodOfProtoLoader {
  readonly requestType: { readonly fileDescriptorProtos: readonly Buffer[] };
}

/** Returns the fully qualified name of each type by its simple name. No two types share one. */
function typeNames(messages: readonly DescriptorProto[], scope: string): ReadonlyMap<string, string> {
  return new Map(
    messages.flatMap(({ name, enumType, nestedType }) => [
      [name, `${scope}.${name}`] as const,
      ...enumType.map((each) => [each.name, `${scope}.${name}.${each.name}`] as const),
      ...typeNames(nestedType, `${scope}.${name}`),
    ]),
  );
}

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

/** Adds a file after its imports. */
function collect(file: DescFile, files: Set<DescFile>): void {
  for (const dependency of file.dependencies) collect(dependency, files);
  files.add(file);
}
