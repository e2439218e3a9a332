import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import {
  createFileRegistry,
  type DescEnumValue,
  type FileRegistry,
  fromBinary,
  getOption,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const PROTO = fileURLToPath(new URL("../../../../proto", import.meta.url));
const BUF = fileURLToPath(new URL("../../../../node_modules/.bin/buf", import.meta.url));

let protoFiles: FileRegistry | undefined;

/** Returns the proto files of the API, with their comments and all options. */
export function readProtoFiles(): FileRegistry {
  protoFiles ??= buildProtoFiles();
  return protoFiles;
}

function buildProtoFiles(): FileRegistry {
  const built = execFileSync(BUF, ["build", PROTO, "--output", "-"], { maxBuffer: 64 * 1024 * 1024 });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, built));
}

/** Returns what a developer does about an error of a reason, which the generated code leaves out. */
export function remedyOf(reason: DescEnumValue): string {
  const remedy = readProtoFiles().getExtension("onceward.v1.remedy");
  return remedy === undefined ? "" : String(getOption(reason, remedy));
}
