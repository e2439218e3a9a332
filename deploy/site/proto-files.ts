import { execFileSync } from "node:child_process";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/**
 * Returns proto files with their comments and all options.
 *
 * @param buf The path of the program `buf`.
 * @param proto The folder of the proto files.
 */
export function readProtoFiles(buf: string, proto: string): FileRegistry {
  const built = execFileSync(buf, ["build", proto, "--output", "-"], { maxBuffer: 64 * 1024 * 1024 });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, built));
}
