import { randomBytes, randomUUID } from "node:crypto";
import { availableParallelism, loadavg } from "node:os";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Onceward } from "@onceward/client";
import type { TenantAdmin } from "@onceward/client/admin";
import { Result_Kind, type Tenant } from "@onceward/client/proto";
import { type Command, InvalidArgumentError } from "commander";
import { parseDurationMs } from "#words/durations";
import { parseByteCount, parseCount } from "../arguments.ts";
import { type Measured, measure, type Phase } from "../bench/measure.ts";
import { describeFigures, limitOf } from "../bench/report.ts";
import { makeSite } from "../bench/site.ts";
import { createOnceward, createTenantAdmin } from "../clients.ts";
import { confirm, type YesOption } from "../confirm.ts";
import { EXIT, Outcome } from "../failure.ts";
import type { Host } from "../host.ts";
import { type Session, sessions } from "../session.ts";
import { command, withYes } from "./group.ts";

interface BenchOptions extends YesOption {
  /** Of all phases together, in milliseconds. */
  readonly duration: number;
  readonly callers: number;
  readonly resultBytes: number;
}

const DEFAULT_DURATION_MS = 15_000;
const MIN_DURATION_MS = 300;
const MAX_DURATION_MS = 10 * 60_000;
const MAX_CALLERS = 4096;
/** Half of the largest result that a policy allows by default. */
const MAX_RESULT_BYTES = 32 * 1024;
/** The records that a phase makes at most: a GiB of the database with the default result. */
const MAX_OPERATIONS = 1_000_000;
/** The completed keys that the last phase asks for again. */
const MAX_REPLAYED_KEYS = 10_000;
const PHASES = 3;

/** Returns `onceward bench`: what an installation answers to its callers. */
export function benchCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withYes(
    command(
      "bench",
      "Measures this installation from here: claims, claims with their completion, and replays, in a namespace that it makes and deletes. The calls count against the tenant's quotas, and cost its other callers speed. Ctrl-C ends it early; it cleans up then, too.",
      "bench",
      "bench --callers 256 --duration 1m --yes",
      "bench --yes --json",
    ),
  )
    .option(
      "--duration <duration>",
      "of all phases together, 300ms to 10m",
      parseBenchDuration,
      DEFAULT_DURATION_MS,
    )
    .option("--callers <count>", `calls at once, 1 to ${MAX_CALLERS}`, parseCallers, 64)
    .option("--result-bytes <bytes>", "size of a stored result, at most 32KiB", parseResultBytes, 200)
    .action(
      asAdmin(async (session, options: BenchOptions) => {
        const { tenant } = await session.client.getTenant({}, session.call);
        await confirm(session, options, { question: questionFor(tenant, options) });
        await runBench(session, tenant, options);
      }),
    );
}

function questionFor(tenant: Tenant | undefined, { duration, callers }: BenchOptions): string {
  const rate = tenant?.quotas?.operationsPerSecond;
  const quota = rate === undefined ? "no quota of operations" : `a quota of ${rate} operations a second`;
  return `Send calls of ${callers} callers for ${duration / 1000} s as the tenant ${tenant?.name}, which has ${quota}?`;
}

async function runBench(
  session: Session<TenantAdmin>,
  tenant: Tenant | undefined,
  options: BenchOptions,
): Promise<void> {
  const { output } = session;
  const stop = new AbortController();
  // Once: a second Ctrl-C ends the process at once.
  const interrupt = () => stop.abort();
  process.once("SIGINT", interrupt);
  process.once("SIGTERM", interrupt);
  try {
    const site = await makeSite(session, tenant, options.duration);
    output.remark(`onceward: measuring in the namespace ${site.namespace}\n`);
    const figures: Measured[] = [];
    try {
      const onceward = await createOnceward({
        address: session.address,
        apiKey: site.apiKey,
        owner: "onceward-bench",
      });
      try {
        for (const phase of phasesOf(onceward, site.namespace, options.resultBytes)) {
          if (stop.signal.aborted) break;
          figures.push(await measure(phase, options.callers, options.duration / PHASES, stop.signal));
        }
      } finally {
        await onceward.close();
      }
    } finally {
      await site.remove();
    }
    const quotas = tenant?.quotas;
    const limited = figures.map((figure) => ({ ...figure, limitedBy: limitOf(figure, quotas) }));
    output.value({ phases: limited, interrupted: stop.signal.aborted }, () =>
      describeFigures(figures, quotas),
    );
    output.remark(busyMachine());
    if (stop.signal.aborted)
      throw new Outcome(EXIT.refused, "Interrupted. The bench's namespace and key are removed.");
  } finally {
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}

/** Returns a remark if more programs want a processor of this machine than it has: they slow the callers down. */
function busyMachine(): string {
  const [load = 0] = loadavg();
  const processors = availableParallelism();
  if (load <= processors) return "";
  return `onceward: this machine is busy (load ${load.toFixed(1)} on ${processors} processors): the figures are too low\n`;
}

/** Returns what is measured. The last phase repeats keys that the one before it completed. */
function phasesOf(onceward: Onceward, namespace: string, resultBytes: number): readonly Phase[] {
  const fingerprint = randomBytes(32);
  const result = {
    kind: Result_Kind.SUCCESS,
    payload: randomBytes(resultBytes),
    contentType: "application/octet-stream",
  };
  const completed: string[] = [];
  /** Complete under every policy: with a fingerprint and the key's time. */
  const claim = async (key: string, expected: "claimed" | "completed") => {
    const keyCreatedAt = timestampFromMs(Date.now());
    const request = {
      namespace,
      key,
      fingerprint,
      keyCreatedAt,
      claimId: randomUUID(),
      owner: "onceward-bench",
    };
    const { outcome } = await onceward.calls.claim(request);
    if (outcome.case !== expected) throw new Error(`${key} is ${outcome.case}, not ${expected}`);
    return outcome;
  };
  return [
    {
      name: "claims",
      maxOperations: MAX_OPERATIONS,
      async operate(index) {
        await claim(`claim-${index}`, "claimed");
      },
    },
    {
      name: "claims with completion",
      maxOperations: MAX_OPERATIONS,
      async operate(index) {
        const key = `pair-${index}`;
        const { value } = await claim(key, "claimed");
        const fencingToken = "fencingToken" in value ? value.fencingToken : 0n;
        await onceward.calls.complete({ namespace, key, fencingToken, result });
        if (completed.length < MAX_REPLAYED_KEYS) completed.push(key);
      },
    },
    {
      name: "replays",
      get maxOperations() {
        return completed.length === 0 ? 0 : Number.POSITIVE_INFINITY;
      },
      async operate(index) {
        await claim(completed[index % completed.length] ?? "", "completed");
      },
    },
  ];
}

function parseBenchDuration(text: string): number {
  const ms = parseDurationMs(text) ?? 0;
  if (ms >= MIN_DURATION_MS && ms <= MAX_DURATION_MS) return ms;
  throw new InvalidArgumentError("It must be a duration from 300ms to 10m.");
}

function parseCallers(text: string): number {
  const callers = parseCount(text);
  if (callers >= 1 && callers <= MAX_CALLERS) return callers;
  throw new InvalidArgumentError(`It must be from 1 to ${MAX_CALLERS}.`);
}

function parseResultBytes(text: string): number {
  const bytes = parseByteCount(text);
  if (bytes <= MAX_RESULT_BYTES) return bytes;
  throw new InvalidArgumentError("It must be at most 32KiB.");
}
