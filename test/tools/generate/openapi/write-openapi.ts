import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { stringify } from "yaml";
import { VERSION } from "../../../../server/src/version.ts";
import { openApiDocument } from "./document.ts";

/** Writes `server/openapi.yaml` from the proto files; part of `npm run generate`. */
const FILE = new URL("../../../../server/openapi.yaml", import.meta.url);
const PROTO = fileURLToPath(new URL("../../../../proto", import.meta.url));
const BUF = fileURLToPath(new URL("../../../../node_modules/.bin/buf", import.meta.url));

const built = execFileSync(BUF, ["build", PROTO, "--output", "-"], { maxBuffer: 64 * 1024 * 1024 });
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, built));
const text = stringify(openApiDocument(registry, VERSION), { lineWidth: 110, aliasDuplicateObjects: false });
writeFileSync(FILE, `# Written by \`npm run generate\` from proto/.\n${text}`);
