import { create, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer } from "@grpc/proto-loader";
import { ReflectionService } from "@grpc/reflection";

/** Lets clients that have no .proto file ask for the schema: grpc.reflection.v1 and v1alpha. */
export function addReflection(server: Server, services: readonly DescService[]): void {
  const files = new Map<string, DescFile>();
  for (const service of services) collect(service.file, files);
  const set = create(FileDescriptorSetSchema, { file: [...files.values()].map((file) => file.proto) });
  const definition = loadFileDescriptorSetFromBuffer(Buffer.from(toBinary(FileDescriptorSetSchema, set)));
  new ReflectionService(definition, {
    services: [...new Set(services.map((service) => service.typeName))],
  }).addToServer(server);
}

/** A file after everything that it imports. */
function collect(file: DescFile, files: Map<string, DescFile>): void {
  for (const dependency of file.dependencies) collect(dependency, files);
  files.set(file.name, file);
}
