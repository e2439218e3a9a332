import type { Queries } from "./panels.ts";

/** The replicas that the dashboard's variables select. */
export const REPLICAS = 'job="$job",instance=~"$instance"';

/** Returns the rate of a counter by labels. */
export function rateBy(labels: string, counter: string, selector = REPLICAS): string {
  return `sum by (${labels}) (rate(${counter}{${selector}}[$__rate_interval]))`;
}

/** Returns the rate of a counter of all replicas together. */
export function sumRate(counter: string): string {
  return `sum(rate(${counter}{${REPLICAS}}[$__rate_interval]))`;
}

/** Returns percentiles of a histogram by a label; `percents` are 50 and 99, for example. */
export function percentiles(percents: readonly number[], histogram: string, label: string): Queries {
  const buckets = rateBy(`le, ${label}`, `${histogram}_bucket`);
  return Object.fromEntries(
    percents.map((each) => [`{{${label}}} p${each}`, `histogram_quantile(${each / 100}, ${buckets})`]),
  );
}
