import { type DescFile, type DescService, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { service as health } from "grpc-health-check";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.ts";

/** Lets clients that have no .proto file ask for the schema, errors' details included: grpc.reflection.v1 and v1alpha. */
export function addReflection(server: Server, services: readonly DescService[]): void {
  const files = new Set<DescFile>();
  for (const service of services) collect(service.file, files);
  collect(file_google_rpc_error_details, files);
  // Of a package definition, only the files are read. They are handed over as they were compiled: made anew by
  // proto-loader they lose their imports, and clients that link them, such as grpcurl, can't resolve any type.
  const fileDescriptorProtos = Array.from(files, ({ proto }) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, proto)),
  );
  const definition = { files: { fileDescriptorProtos: [...fileDescriptorProtos, ...healthFiles()] } };
  new ReflectionService(definition as unknown as PackageDefinition, {
    services: [...new Set(services.map((service) => service.typeName)), HEALTH],
  }).addToServer(server);
}

const HEALTH = "grpc.health.v1.Health";

/** As proto-loader read it, but that types are named from the root on, without which clients can't find them. */
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

/** Where each type is, by its name alone: there are no two of one name. */
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

/** A file after everything that it imports. */
function collect(file: DescFile, files: Set<DescFile>): void {
  for (const dependency of file.dependencies) collect(dependency, files);
  files.add(file);
}
