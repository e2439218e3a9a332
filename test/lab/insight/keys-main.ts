import { type Alarms, measureAlarms } from "./key-alarms.ts";
import { DEFECTS, HONEST, INDISTINGUISHABLE, type KeyTraffic } from "./key-traffic.ts";

/** `npm run lab -- keys [MONTHS] [SEED]`: prints the tables of keys in README.md. */
const [months = "400", seed = "1"] = process.argv.slice(2);

function measure(traffic: KeyTraffic): Alarms {
  return measureAlarms(traffic, Number(months), Number(seed));
}

function percent(count: number): string {
  return `${((100 * count) / Number(months)).toFixed(1)} %`;
}

console.log("| honest traffic | months | false alarms |\n|---|---|---|");
for (const [name, traffic] of Object.entries({ ...HONEST, ...INDISTINGUISHABLE })) {
  const { any, suspected } = measure(traffic);
  const kinds = [...suspected.keys()].map((kind) => ` ${kind}`).join("");
  console.log(`| ${name} | ${months} | ${percent(any)}${kinds} |`);
}
console.log("\n| defect | months | detected | mean days |\n|---|---|---|---|");
for (const [name, traffic] of Object.entries(DEFECTS)) {
  const { suspected, daysUntil } = measure(traffic);
  const days = daysUntil.get(traffic.kind)?.toFixed(1) ?? "-";
  console.log(`| ${name} | ${months} | ${percent(suspected.get(traffic.kind) ?? 0)} | ${days} |`);
}
