import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const PROTO = fileURLToPath(new URL("../../../../proto", import.meta.url));
const BUF = fileURLToPath(new URL("../../../../node_modules/.bin/buf", import.meta.url));

/** Returns the proto files of the API, with their comments. */
export function readProtoFiles(): FileRegistry {
  const built = execFileSync(BUF, ["build", PROTO, "--output", "-"], { maxBuffer: 64 * 1024 * 1024 });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, built));
}
