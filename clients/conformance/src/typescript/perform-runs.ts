import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { withIdempotencyKeys } from "../../../typescript/src/http.ts";
import {
  bytesCodec,
  type Claim,
  type CodecRunOptions,
  createOnceward,
  didNotHappen,
  happened,
  NoEffectError,
  type Onceward,
  OutcomeUnknownError,
  type Resolve,
  type RunOptions,
  stillOpen,
  TerminalError,
  unknown,
} from "../../../typescript/src/index.ts";
import { reportCheckpoint, reportError, reportResult } from "./report.ts";
import { readValue, writeValue } from "./values.ts";

/** Runs of one client, one after the other. */
export interface RunCase {
  readonly do: "run";
  readonly address: string;
  readonly runs: readonly Run[];
  /** What the client's source of tokens returns, one after the other. Default: the client has an API key. */
  readonly tokens?: readonly string[];
  /** Closes the client so long after the first run began. Otherwise it is closed after the last run. */
  readonly closeAfterMs?: number;
  /** The argument of this early `close`. Default: none. */
  readonly closeTimeoutMs?: number;
}

interface Run {
  readonly options?: Partial<Omit<RunOptions, "classifyError">> & { readonly codec?: "bytes" };
  /** The errors of the function, by their messages, that `classifyError` calls terminal. */
  readonly terminalErrors?: readonly string[];
  /** Closes the client before this run. */
  readonly closeBefore?: true;
  /** Asks whether these keys were seen, in place of a run; of one key, by the call for one. */
  readonly seen?: readonly string[];
  /** The steps of the function. */
  readonly function: readonly Step[];
  /** The steps of each call of `resolve`; the last one's serve all further ones. Default: the run has none. */
  readonly resolve?: readonly (readonly ResolveStep[])[];
  /** Ends the run for its caller so long after it began. */
  readonly cancelAfterMs?: number;
}

/** A step of a function. */
export type Step =
  | { readonly deriveKey: string }
  | { readonly send: { readonly method: string; readonly url: string; readonly key?: string } }
  | { readonly saveCheckpoint: { readonly name: string; readonly state?: unknown } }
  | { readonly begin: true }
  | { readonly awaitLost: true }
  | { readonly return: unknown }
  | { readonly throw: string }
  | { readonly throwUnknown: string }
  | { readonly throwNoEffect: string }
  | { readonly throwTimeout: string }
  | { readonly throwCaused: { readonly message: string; readonly cause: keyof typeof CAUSES } }
  | { readonly markUnknown: string }
  | {
      readonly throwTerminal: {
        readonly message: string;
        readonly details?: unknown;
        readonly name?: string;
      };
    };

/** A step of `resolve`: what a function does, or an answer. */
export type ResolveStep =
  | Step
  | { readonly happened: unknown }
  | { readonly didNotHappen: true }
  | { readonly stillOpen: number }
  | { readonly unknown: true };

/** The causes of `throwCaused`. */
const CAUSES = {
  noEffect: new NoEffectError("no effect"),
  unknown: new OutcomeUnknownError("unknown"),
  timeout: timeoutError("timeout"),
  rpcDeadline: new ConnectError("deadline", Code.DeadlineExceeded),
  connectTimeout: Object.assign(new Error("connect timeout"), { name: "ConnectTimeoutError" }),
};

/** What a call of the function saw. */
type Seen = Record<string, unknown>;

/** Performs the runs. Returns the outcome of each, and what each call of a function saw. */
export async function performRuns(action: RunCase): Promise<object> {
  const { address, runs, closeAfterMs, closeTimeoutMs, tokens } = action;
  const source = tokens?.values();
  const credential = source ? { token: () => `${source.next().value}` } : { apiKey: "conformance" };
  const onceward = createOnceward({ address, owner: "conformance", ...credential });
  const closing =
    closeAfterMs === undefined
      ? undefined
      : sleep(closeAfterMs).then(() => onceward.close({ timeoutMs: closeTimeoutMs }));
  const seen = { functions: [] as Seen[], searches: [] as Seen[] };
  const outcomes: object[] = [];
  for (const run of runs) {
    if (run.closeBefore) await onceward.close();
    outcomes.push(await performRun(onceward, run, seen));
  }
  await closing;
  await onceward.close();
  return { runs: outcomes, ...seen };
}

async function performRun(
  onceward: Onceward,
  run: Run,
  { functions, searches }: { readonly functions: Seen[]; readonly searches: Seen[] },
): Promise<object> {
  const { options: { codec, fingerprint, ...options } = {}, cancelAfterMs, terminalErrors } = run;
  const classifyError = (error: unknown) =>
    error instanceof Error && terminalErrors?.includes(error.message) ? "terminal" : "release";
  const runOptions = {
    namespace: "charges",
    key: "order-1",
    ...options,
    ...(fingerprint !== undefined && { fingerprint: readValue(fingerprint) }),
    ...(codec === "bytes" && { codec: bytesCodec }),
    ...(cancelAfterMs !== undefined && { signal: abortAfter(cancelAfterMs) }),
    ...(terminalErrors !== undefined && { classifyError }),
    ...(run.resolve !== undefined && { resolve: performSearches(run.resolve, searches) }),
  } as CodecRunOptions<unknown>;
  const { seen } = run;
  try {
    if (seen?.length === 1) return { seen: [await onceward.seen({ ...runOptions, key: `${seen[0]}` })] };
    if (seen !== undefined) return { seen: await onceward.seenAll({ ...runOptions, keys: seen }) };
    const result = await onceward.runDetailed(runOptions, (claim) => {
      const seen = describeClaim(claim);
      functions.push(seen);
      return perform(run.function, claim, seen);
    });
    return reportResult(result);
  } catch (error) {
    return reportError(error);
  }
}

/** Returns a `resolve` whose calls perform these steps, and note what they saw. */
function performSearches(calls: readonly (readonly ResolveStep[])[], searches: Seen[]): Resolve {
  const rest = [...calls];
  return async (claim) => {
    const seen = { ...describeClaim(claim), sinceMs: claim.msSinceEffectMayHaveBegun };
    searches.push(seen);
    const steps = (rest.length > 1 ? rest.shift() : rest[0]) ?? [];
    for (const step of steps) {
      if ("happened" in step) return happened(readValue(step.happened));
      if ("didNotHappen" in step) return didNotHappen();
      if ("stillOpen" in step) return stillOpen({ retryAfterMs: step.stillOpen });
      if ("unknown" in step) return unknown();
      await perform([step], claim, seen);
    }
    return unknown();
  };
}

/** Returns a signal that aborts with the platform's AbortError. */
function abortAfter(delayMs: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), delayMs);
  return controller.signal;
}

/** Returns what a function saw of its claim. */
export function describeClaim(claim: Claim): Seen {
  const { guarded, namespace, key, attempt, fencingToken, checkpoint } = claim;
  const seen = { guarded, namespace, key, attempt, fencingToken: `${fencingToken}`, derivedKeys: [] };
  return { ...seen, ...(checkpoint && { checkpoint: reportCheckpoint(checkpoint) }) };
}

/** Performs the steps of a function. Resolves with its value. */
export async function perform(steps: readonly Step[], claim: Claim, seen: Seen): Promise<unknown> {
  for (const step of steps) {
    if ("deriveKey" in step) (seen.derivedKeys as string[]).push(claim.deriveKey(step.deriveKey));
    else if ("send" in step) (seen.derivedKeys as unknown[]).push(await keySentWith(step.send));
    else if ("saveCheckpoint" in step) {
      const { name, state } = step.saveCheckpoint;
      await claim.saveCheckpoint(name, readValue(state));
    } else if ("begin" in step) await claim.begin();
    else if ("awaitLost" in step) seen.lost = await lossOf(claim.signal);
    else if ("return" in step) return readValue(step.return);
    else if ("throw" in step) throw new Error(step.throw);
    else if ("throwUnknown" in step) throw new OutcomeUnknownError(step.throwUnknown);
    else if ("throwNoEffect" in step) throw new NoEffectError(step.throwNoEffect);
    else if ("throwTimeout" in step) throw timeoutError(step.throwTimeout);
    else if ("throwCaused" in step) {
      const { message, cause } = step.throwCaused;
      throw new Error(message, { cause: CAUSES[cause] });
    } else if ("markUnknown" in step) claim.outcomeUnknown(new Error(step.markUnknown));
    else {
      const { message, details, name } = step.throwTerminal;
      throw new TerminalError(message, readValue(details), name === undefined ? {} : { name });
    }
  }
  return undefined;
}

/** Returns the header `Idempotency-Key` with which a request is sent; null for none. */
async function keySentWith({
  method,
  url,
  key,
}: {
  method: string;
  url: string;
  key?: string;
}): Promise<unknown> {
  let sent: string | null = null;
  const send = withIdempotencyKeys(async (_, init) => {
    sent = new Headers(init?.headers).get("idempotency-key");
    return new Response();
  });
  await send(url, { method, headers: key === undefined ? {} : { "idempotency-key": key } });
  return sent;
}

/** Returns what `AbortSignal.timeout` makes calls throw. */
function timeoutError(message: string): Error {
  return new DOMException(message, "TimeoutError");
}

/** Resolves with what ended the claim: the reason of the error, or "cancelled". */
async function lossOf(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  const { reason } = signal;
  return reason instanceof Error && "reason" in reason ? writeValue(reason.reason) : "cancelled";
}
