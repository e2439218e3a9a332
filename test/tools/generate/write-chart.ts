import { writeFileSync } from "node:fs";
import { chartFiles } from "../../support/chart/chart-files.ts";
import { CHART } from "../../support/chart/values.ts";

/** Writes the generated files of the Helm chart; part of `npm run generate`. */
for (const [name, text] of Object.entries(chartFiles())) writeFileSync(`${CHART}${name}`, text);
