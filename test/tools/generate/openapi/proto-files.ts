import { fileURLToPath } from "node:url";
import { type DescEnumValue, getOption } from "@bufbuild/protobuf";
import { readProtoFiles } from "../../../../deploy/site/proto-files.ts";

const PROTO = fileURLToPath(new URL("../../../../proto", import.meta.url));
const BUF = fileURLToPath(new URL("../../../../node_modules/.bin/buf", import.meta.url));

/** The proto files of the API, with their comments and all options. */
export const PROTO_FILES = readProtoFiles(BUF, PROTO);

const REMEDY = PROTO_FILES.getExtension("onceward.v1.remedy");

/** Returns what a developer does about an error of a reason, which the generated code leaves out. */
export function remedyOf(reason: DescEnumValue): string {
  return REMEDY === undefined ? "" : String(getOption(reason, REMEDY));
}
