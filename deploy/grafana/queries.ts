import type { Query } from "./panels.ts";

/** The replicas that the dashboard's variables select. */
export const REPLICAS = 'job="$job",instance=~"$instance"';

/** Returns the rate of a counter by labels. */
export function rateBy(labels: string, counter: string, selector = REPLICAS): string {
  return `sum by (${labels}) (rate(${counter}{${selector}}[$__rate_interval]))`;
}

/** Returns a percentile of a histogram by a label; `percent` is 50 or 99, for example. */
export function percentile(percent: number, histogram: string, label: string): Query {
  return {
    expr: `histogram_quantile(${percent / 100}, ${rateBy(`le, ${label}`, `${histogram}_bucket`)})`,
    legend: `{{${label}}} p${percent}`,
  };
}
