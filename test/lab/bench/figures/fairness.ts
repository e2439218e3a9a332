import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createTenant } from "../../../support/servers/tenants.ts";
import type { Figure } from "../figure.ts";
import { ratioOf } from "../finding.ts";
import { runSlice, type Slice, summarize } from "../load.ts";
import type { Station } from "../rig.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

/** Callers of the tenant whose latency is measured. */
const CALLERS = 8;
/** Fifty times as many callers, of the other tenant. */
const GREEDY_CALLERS = 50 * CALLERS;
const GREEDY = fileURLToPath(new URL("../greedy.ts", import.meta.url));
/** Until the greedy tenant is at full speed. */
const GREEDY_START_MS = 1500;

/** Measures P10: a tenant's latency while another calls fifty times as much. */
export const measureFairness: Figure = async ({ main, options, violations, signal, pace, progress }) => {
  progress("a greedy neighbour");
  const durationMs = options.quick ? 500 : 3000;
  const fresh = new FreshClaims(oncewardTarget(main.client.calls, main.database), violations);
  const claim = () => runSlice(fresh.claim, { callers: CALLERS, durationMs }, signal);
  await runSlice(fresh.claim, { callers: CALLERS, durationMs: pace.warmUpMs }, signal);
  const slices: { readonly alone: Slice[]; readonly crowded: Slice[] } = { alone: [], crowded: [] };
  for (let turn = 0; turn < (options.quick ? 1 : 3); turn++) {
    slices.alone.push(await claim());
    await using _ = await startGreedy(main);
    slices.crowded.push(await claim());
  }
  await fresh.verify();
  const [alone, crowded] = [summarize(slices.alone), summarize(slices.crowded)];
  return [
    ratioOf(
      {
        figure: "P10",
        what: "a tenant's p99 beside one with 50 times its callers ÷ alone",
        bar: { atMost: 2 },
      },
      { "crowded ms": crowded.p99Ms, "alone ms": alone.p99Ms },
    ),
  ];
};

/** A process that claims as another tenant until it is disposed of. */
async function startGreedy({ server, database }: Station): Promise<AsyncDisposable> {
  const { apiKey } = await createTenant(database);
  const args = [GREEDY, `http://127.0.0.1:${server.grpcPort}`, apiKey, String(GREEDY_CALLERS)];
  const child = spawn(process.execPath, ["--conditions=@onceward/source", ...args], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const exited = once(child, "exit");
  await new Promise((resolve) => setTimeout(resolve, GREEDY_START_MS));
  return {
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}
