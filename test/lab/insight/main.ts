import { measureCoverage, SETTINGS } from "./coverage.ts";
import { TRAFFIC } from "./traffic.ts";

/** `npm run lab -- insight [RUNS] [SEED]`: prints the table of README.md. */
const [runs = "200", seed = "1"] = process.argv.slice(2);
console.log("| traffic | sample | statements | interval | upper end | bound |");
console.log("|---|---|---|---|---|---|");
for (const [name, traffic] of Object.entries(TRAFFIC)) {
  for (const [sample, setting] of Object.entries(SETTINGS)) {
    const coverage = measureCoverage(traffic, setting, Number(runs), Number(seed));
    const shares = [coverage.interval, coverage.duplicates, coverage.bound];
    const cells = shares.map((share) => `${(100 * share).toFixed(1)} %`);
    console.log(`| ${name} | ${sample} | ${[coverage.statements, ...cells].join(" | ")} |`);
  }
}
