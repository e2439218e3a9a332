import { writeFile } from "node:fs/promises";
import { API_FILE, apiReport } from "./api-report.ts";
import { readSurface } from "./declarations.ts";

/** `npm run api:report`. */
await writeFile(API_FILE, apiReport(await readSurface()));
