import { writeFile } from "node:fs/promises";
import { API_FILE, apiReport } from "../../support/packages/api-report.ts";
import { readSurface } from "../../support/packages/declarations.ts";

/** `npm run generate -- api`: writes the report of the client's API to its file. */
await writeFile(API_FILE, apiReport(await readSurface()));
