import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { callHeaders } from "../../../support/network/unary-connection.ts";
import { firstLine, startChild } from "../child.ts";
import type { Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { alternate, type Step } from "../load.ts";
import { FreshClaims, prepareReplays } from "../target.ts";
import { openConnections, openUnaryTarget } from "../target-unary.ts";

const BARE_SERVER = fileURLToPath(new URL("../bare-rpc.ts", import.meta.url));

const run = promisify(execFile);

/** Pins all threads of a process to the last core; false if there is no `taskset`. */
async function pinToOneCore(pid: number): Promise<boolean> {
  try {
    await run("taskset", ["-a", "-c", "-p", String(availableParallelism() - 1), String(pid)]);
    return true;
  } catch {
    return false;
  }
}

const CALLERS = 256;
const KEYS = 1000;

/** The bytes of a claim and of its replay, as this figure sends and gets them. */
const BYTES = { claim: 150, replay: 290 };

/** Starts a server of `node:http2` alone on the same core; the calls to it are those to a server, with other bytes. */
async function startBareServer(cleanUp: AsyncDisposableStack, apiKey: string): Promise<Step> {
  const server = startChild(cleanUp, [BARE_SERVER, String(BYTES.replay)]);
  const port = Number(await firstLine(server.stdout));
  await pinToOneCore(server.pid ?? 0);
  const next = await openConnections(cleanUp, port);
  const headers = callHeaders("Claim", apiKey);
  const message = Buffer.alloc(BYTES.claim);
  return async () => void (await next().call(headers, message));
}

/** Measures P4: plain unary gRPC, as clients of any language send it, to a server on one core, beside a server that only answers. */
export const measureUnary: Figure = async ({ rig, violations, signal, pace, progress }) => {
  await using cleanUp = new AsyncDisposableStack();
  await using station = await rig.startStation();
  const pinned = await pinToOneCore(station.server.pid);
  const server = pinned ? "one core" : "one process (no taskset: not pinned)";
  await using target = await openUnaryTarget(station);
  const { among } = await prepareReplays(target, KEYS, violations);
  const fresh = new FreshClaims(target, violations);
  const before = await target.countKeys();
  progress(`unary replays and claims, and a server that only answers, ${CALLERS} callers`);
  const bare = await startBareServer(cleanUp, station.tenant.apiKey);
  const sides = { replays: among(KEYS), claims: fresh.claim, bare };
  const measured = await alternate(sides, { ...pace, callers: CALLERS }, signal);
  await fresh.verify(before);
  const finding = (part: "replays" | "claims", atLeast: number): Finding => ({
    ...{ figure: "P4", part, unit: "×", bar: { atLeast } },
    what: `unary ${part}/s of a server on ${server} ÷ those of node:http2 alone`,
    value: measured[part].perSecond / measured.bare.perSecond,
    raw: {
      "Onceward /s": measured[part].perSecond,
      "node:http2 /s": measured.bare.perSecond,
      "p50 ms": measured[part].p50Ms,
      "p99 ms": measured[part].p99Ms,
    },
  });
  return [finding("replays", 0.33), finding("claims", 0.2)];
};
