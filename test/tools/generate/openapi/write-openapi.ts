import { writeFileSync } from "node:fs";
import { stringify } from "yaml";
import { VERSION } from "../../../../server/src/version.ts";
import { openApiDocument } from "./document.ts";
import { PROTO_FILES } from "./proto-files.ts";

/** Writes `server/openapi.yaml` from the proto files; part of `npm run generate`. */
const FILE = new URL("../../../../server/openapi.yaml", import.meta.url);

const text = stringify(openApiDocument(PROTO_FILES, VERSION), {
  lineWidth: 110,
  aliasDuplicateObjects: false,
});
writeFileSync(FILE, `# Written by \`npm run generate\` from proto/.\n${text}`);
