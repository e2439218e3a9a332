import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { file_google_rpc_error_details } from "../gen/google/rpc/error_details_pb.ts";

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
  const definition = { files: { fileDescriptorProtos } } as unknown as PackageDefinition;
  new ReflectionService(definition, {
    services: [...new Set(services.map((service) => service.typeName))],
  }).addToServer(server);
}

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

/** A file after everything that it imports. */
function collect(file: DescFile, files: Set<DescFile>): void {
  for (const dependency of file.dependencies) collect(dependency, files);
  files.add(file);
}
