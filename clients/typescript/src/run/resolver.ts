import type { Client } from "@connectrpc/connect";
import { concurrencyOf, inTurns } from "../consumers/concurrency.ts";
import { AmbiguousError, InProgressError, ResultUnavailableError, TerminalError } from "../errors/errors.ts";
import { checkWholeNumber } from "../errors/violations.ts";
import { Record_State, type Record as RecordMessage } from "../gen/onceward/v1/record_pb.ts";
import { ListRecordsRequest_Order, type TenantAdminService } from "../gen/onceward/v1/tenant_admin_pb.ts";
import { ATTEMPT_TIMEOUT_MS } from "../transport/batch-sender.ts";
import { dateOf } from "./calls.ts";
import type { Onceward } from "./client.ts";
import { jsonCodec } from "./codec.ts";
import { NoEffectError } from "./outcome-unknown.ts";
import type { Resolve, UnresolvedClaim } from "./resolution.ts";
import { sleep, throwIfAborted } from "./retry.ts";
import { type CodecRunOptions, checkNamespaceOptions, type RunOptions } from "./run-options.ts";

/** Also the size of a page in memory: records of a list have no results. */
const PAGE_SIZE = 100;
const DEFAULT_PAUSE_MS = 10_000;
const DEFAULT_RESOLVE_TIMEOUT_MS = 60_000;
/** The longest time after which `resolve` is asked again if it did not know, or failed. */
const MAX_ASK_AGAIN_MS = 30_000;
/** The key of the claim by which one of several resolvers works. */
const LOCK_KEY = "onceward-resolver";
/** Each is a key and a time, so that they take a few megabytes. */
const MAX_POSTPONED = 10_000;

/** With which a run is rejected whose record is settled: released now, or completed before. */
const SETTLED = [NoEffectError, TerminalError, ResultUnavailableError];

/** Whose ambiguous records are settled, and how. */
export interface ResolveOptions
  extends Pick<RunOptions, "namespace" | "leaseMs" | "timeoutMs" | "owner" | "stores" | "signal"> {
  /** Claims the records. Its `onEvent` and `trace` observe that, and a resolver's own claim, as runs. */
  readonly onceward: Pick<Onceward, "run" | "lookup" | "calls">;
  /** Lists the records. */
  readonly admin: Pick<Client<typeof TenantAdminService>, "listRecords">;
  /** As `RunOptions.resolve` describes it. */
  readonly resolve: Resolve;
  /** Stores the values of `happened`, as the runs of the namespace do. Default: `jsonCodec`. */
  readonly codec?: CodecRunOptions<unknown>["codec"] | undefined;
  /** The most records about which `resolve` is asked at the same time, 1-1,000. Default: 10. */
  readonly concurrency?: number | undefined;
  /** How long `resolve` may take, in milliseconds, 10-3,600,000; it has failed then. Default: 60,000. */
  readonly resolveTimeoutMs?: number | undefined;
  /** Called with each error of `resolve` and of the service; must not throw. The record stays ambiguous. Default: none. */
  readonly onFailed?: ((error: unknown) => void) | undefined;
}

/** The outcomes of the records of one pass. */
export interface ResolveCounts {
  /** Completed, or released for the next delivery, now or in the meantime. */
  settled: number;
  /** As they were. */
  open: number;
  /** As they were, after an error. */
  failed: number;
}

/**
 * Asks `resolve` about each ambiguous record of a namespace, for a scheduled job: what happened is completed, what did not happen is
 * released for its next delivery, and each other record stays as it is, for another retention. Concurrent passes share the records.
 * Not for namespaces of HTTP guards, whose records hold responses: there the next request asks.
 *
 * @throws InvalidRequestError; the errors of `admin`; the signal's reason. No claim is left behind.
 */
export async function resolveAmbiguous(options: ResolveOptions): Promise<ResolveCounts> {
  checkOptions(options);
  return await pass(options, new Map());
}

function checkOptions(options: ResolveOptions): void {
  checkNamespaceOptions(options);
  concurrencyOf(options);
  checkWholeNumber("resolveTimeoutMs", options.resolveTimeoutMs ?? DEFAULT_RESOLVE_TIMEOUT_MS, 10, 3_600_000);
}

/** The options of a resolver. */
export interface ResolverOptions extends ResolveOptions {
  /** How long to wait after a pass, in milliseconds, 10-3,600,000. Default: 10,000. */
  readonly pauseMs?: number | undefined;
}

/** A running resolver. */
export interface Resolver extends AsyncDisposable {
  /** Ends the resolver; what it claimed is given back. May be called again. */
  close(): Promise<void>;
}

/**
 * Starts a resolver, which makes the passes of `resolveAmbiguous` until it, or its client, is closed or `signal` aborts. Of several with
 * a namespace one works, under a claim of the namespace with the key "onceward-resolver", and another follows when it ends. A record
 * that is still open is not asked about again before its time, one of which `resolve` did not know after half of the time for which it
 * has been unknown, at most 30 seconds. The resolver continues after outages of the service.
 *
 * @throws InvalidRequestError for an invalid `pauseMs`.
 */
export function startResolver({ pauseMs = DEFAULT_PAUSE_MS, ...options }: ResolverOptions): Resolver {
  checkOptions(options);
  checkWholeNumber("pauseMs", pauseMs, 10, 3_600_000);
  const { onceward, namespace, leaseMs, timeoutMs, owner, onFailed } = options;
  const closing = new AbortController();
  const ends = [closing.signal, onceward.calls.closing, options.signal];
  const signal = AbortSignal.any(ends.filter((each) => each !== undefined));
  const shared = { namespace, leaseMs, timeoutMs, owner, signal };
  const postponed = new Map<string, number>();
  const report = (error: unknown) => signal.aborted || onFailed?.(error);

  async function work(): Promise<void> {
    try {
      const key = LOCK_KEY;
      const lock = { ...shared, key, fingerprint: key, keyCreatedAt: new Date(), marksBegin: true };
      await onceward.run({ ...lock, acceptAmbiguous: true, onInProgress: "throw" }, async (claim) => {
        await pass({ ...options, signal: claim.signal }, postponed).catch(report);
        // Under the claim, so that the pause is between the passes of all resolvers.
        await sleep(pauseMs, claim.signal).catch(() => {});
        throw new NoEffectError("The pass has ended.");
      });
      throw new TerminalError(`Resolvers can't work until the completed record "${LOCK_KEY}" is forgotten.`);
    } catch (error) {
      if (error instanceof NoEffectError) return;
      if (!(error instanceof InProgressError)) report(error);
      await sleep(pauseMs, signal).catch(() => {});
    }
  }

  const running = (async () => {
    while (!signal.aborted) await work();
  })();
  const close = () => {
    closing.abort();
    return running;
  };
  return { close, [Symbol.asyncDispose]: close };
}

/** @param postponed until when not to ask again, by keys, in milliseconds of `performance.now()`. */
async function pass(options: ResolveOptions, postponed: Map<string, number>): Promise<ResolveCounts> {
  const { admin, namespace, signal } = options;
  for (const [key, untilMs] of postponed) if (untilMs <= performance.now()) postponed.delete(key);
  const counts = { settled: 0, open: 0, failed: 0 };
  const settleInTurn = inTurns(options, async (record: RecordMessage) => {
    counts[await settle(options, record, postponed)]++;
  });
  const query = { namespace, state: Record_State.AMBIGUOUS, order: ListRecordsRequest_Order.LEASE_EXPIRY };
  let pageToken = "";
  do {
    const callOptions = { timeoutMs: ATTEMPT_TIMEOUT_MS, ...(signal && { signal }) };
    const page = await admin.listRecords({ ...query, pageSize: PAGE_SIZE, pageToken }, callOptions);
    const records = page.records.filter(({ key }) => key !== LOCK_KEY);
    await Promise.allSettled(records.map(settleInTurn));
    throwIfAborted([signal]);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return counts;
}

/** Settles a record if `resolve` knows how. @throws the signal's reason. */
async function settle(
  { onceward, admin: _, codec = jsonCodec, onFailed, resolve, resolveTimeoutMs, ...options }: ResolveOptions,
  { key, fingerprint, firstClaimedAt }: RecordMessage,
  postponed: Map<string, number>,
): Promise<keyof ResolveCounts> {
  if (postponed.has(key)) return "open";
  let askAgainMs = 0;
  const postpone = (forMs: number) => {
    if (forMs > 0 && postponed.size < MAX_POSTPONED) postponed.set(key, performance.now() + forMs);
  };
  try {
    // A claim of a record that was settled or forgotten since it was listed would begin a new operation.
    const { state } = await onceward.lookup({ ...options, key });
    if (state !== "ambiguous") return state === "in-progress" ? "open" : "settled";
    const named = {
      ...options,
      codec,
      key,
      // It only looks, so that the record may be given back while it hangs.
      resolve: (claim: UnresolvedClaim) => {
        askAgainMs = Math.min(MAX_ASK_AGAIN_MS, claim.msSinceEffectMayHaveBegun / 2);
        const timeout = AbortSignal.timeout(resolveTimeoutMs ?? DEFAULT_RESOLVE_TIMEOUT_MS);
        const end = AbortSignal.any([claim.signal, timeout]);
        return onceward.calls.orEnd(Promise.resolve(claim).then(resolve), end);
      },
      keyCreatedAt: dateOf(firstClaimedAt),
      onInProgress: "throw",
    } as const;
    await onceward.run(fingerprint.byteLength === 0 ? named : { ...named, fingerprint }, () => {
      throw new NoEffectError("A resolver performs no effect.");
    });
    return "settled";
  } catch (error) {
    throwIfAborted([options.signal]);
    if (SETTLED.some((type) => error instanceof type)) return "settled";
    if (error instanceof InProgressError) {
      postpone(error.retryDelayMs ?? 0);
      return "open";
    }
    postpone(askAgainMs);
    if (error instanceof AmbiguousError && error.cause === undefined) return "open";
    onFailed?.(error instanceof AmbiguousError ? error.cause : error);
    return "failed";
  }
}
