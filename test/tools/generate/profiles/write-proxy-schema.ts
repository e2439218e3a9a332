import { writeFileSync } from "node:fs";
import { configSchema } from "../../../../clients/http-proxy/src/config.ts";

/** Writes the JSON Schema of the HTTP proxy's configuration, for editors; part of `npm run generate`. */
const SCHEMA = new URL("../../../../clients/http-proxy/routes.schema.json", import.meta.url);
writeFileSync(SCHEMA, `${JSON.stringify(configSchema(), null, 2)}\n`);
