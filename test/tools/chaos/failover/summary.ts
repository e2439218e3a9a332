import { DELAY_MS } from "../../../helpers/network/tcp-proxy.ts";
import type { Failover, Setting } from "./measure.ts";

/**
 * Returns whether a failover kept the promise: a synchronous standby loses nothing; an asynchronous one may.
 */
export function isKept({ setting, lost, tokensAgain }: Failover): boolean {
  return setting.standing === "asynchronous" || lost.claims + lost.completes + tokensAgain === 0;
}

/** Describes a failover in one line. */
export function describeFailover({ setting, seed, acknowledged, lost, ...more }: Failover): string {
  return [
    `${nameOfSetting(setting)}, seed ${seed}:`,
    `${acknowledged.claims} claims and ${acknowledged.completes} completions acknowledged,`,
    `${lost.claims} and ${lost.completes} lost, of the last ${Math.round(more.lostForMs)} ms;`,
    `${more.tokensAgain} tokens not above lost ones; answers again after ${Math.round(more.downMs)} ms`,
  ].join(" ");
}

const HEAD = [
  "standby",
  "failovers",
  "claims, completions acknowledged",
  "claims lost",
  "completions lost",
  "of the last, ms",
  "tokens not above lost ones",
  "answers again after, ms",
];

/** Returns the table for README.md: for each setting, the least and the most of its failovers. */
export function formatSummary(failovers: readonly Failover[]): string {
  const rows = [...Map.groupBy(failovers, ({ setting }) => nameOfSetting(setting))].map(([name, own]) => [
    name,
    String(own.length),
    `${sum(own.map(({ acknowledged }) => acknowledged.claims))}, ${sum(own.map(({ acknowledged }) => acknowledged.completes))}`,
    span(own.map(({ lost }) => lost.claims)),
    span(own.map(({ lost }) => lost.completes)),
    span(own.map(({ lostForMs }) => lostForMs)),
    span(own.map(({ tokensAgain }) => tokensAgain)),
    span(own.map(({ downMs }) => downMs)),
  ]);
  return [HEAD, HEAD.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function nameOfSetting({ standing, link }: Setting): string {
  return link === "slow" ? `${standing}, ${DELAY_MS} ms apart` : standing;
}

function sum(values: readonly number[]): string {
  return values.reduce((total, value) => total + value, 0).toLocaleString("en-US");
}

function span(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map(Math.round);
  return least === most ? `${least}` : `${least}-${most}`;
}
