import { CALLS, SATURATION, SERVICE, SERVICE_LEVELS } from "./calls.ts";
import { dashboard } from "./dashboard.ts";
import { BACKGROUND, BATCHES, CACHE, HTTP_PROXIES, STORE } from "./internals.ts";

/** Returns the dashboard of the service as a whole: what its callers see, and what it runs on. */
export function serviceDashboard() {
  return dashboard({
    uid: "onceward-service",
    title: "Onceward: service",
    description:
      "Calls, saturation, batches, Postgres, sweep, cache and waiters of the replicas, and requests of HTTP proxies. Needs the rules of deploy/prometheus/rules.yml.",
    variables: [],
    sections: [SERVICE, SERVICE_LEVELS, CALLS, SATURATION, BATCHES, STORE, BACKGROUND, CACHE, HTTP_PROXIES],
  });
}
