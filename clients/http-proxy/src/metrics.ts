/**
 * How a request ended: `passed` through without a guard; `ran`, `answered` by the guard alone (a replay or a refusal), `unknown`,
 * `unreachable` (the upstream service, and nothing was sent), `refused` by the proxy, `failed`.
 */
export type Ending = "passed" | "ran" | "answered" | "unknown" | "unreachable" | "refused" | "failed";

const ENDINGS: readonly Ending[] = [
  "passed",
  "ran",
  "answered",
  "unknown",
  "unreachable",
  "refused",
  "failed",
];

/** The proxy's metrics, in Prometheus' text format. */
export class Metrics {
  inFlight = 0;
  readonly #ended = new Map<Ending, number>();

  ended(ending: Ending): void {
    this.#ended.set(ending, (this.#ended.get(ending) ?? 0) + 1);
  }

  text(): string {
    const name = "onceward_http_proxy_requests_total";
    return [
      `# HELP ${name} Requests by how they ended.`,
      `# TYPE ${name} counter`,
      ...ENDINGS.map((ending) => `${name}{ending="${ending}"} ${this.#ended.get(ending) ?? 0}`),
      "# HELP onceward_http_proxy_requests_in_flight Requests that have not ended.",
      "# TYPE onceward_http_proxy_requests_in_flight gauge",
      `onceward_http_proxy_requests_in_flight ${this.inFlight}`,
      "",
    ].join("\n");
  }
}
