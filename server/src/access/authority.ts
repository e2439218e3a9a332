import { NAMESPACE_PATTERN } from "../domain/limits.ts";
import {
  type Deadline,
  indexesOf,
  isExpired,
  mapSettled,
  Rejected,
  type Settled,
  withReplaced,
} from "../domain/operation.ts";
import { isRefusal, Refusal } from "../domain/refusal.ts";
import { PolicyNotLoaded, type Principal } from "../domain/tenant.ts";
import type { BatchHandler, Call } from "./call.ts";

/**
 * Whether the call's principal has expired: nothing may be decided for the call before `Call.again` has authorized it again.
 */
export function isOutdated({ principal }: Pick<Call, "principal">): boolean {
  return performance.now() >= principal.goodUntilMs;
}

/**
 * Returns the deadline for statements of a call: the call's own, or the expiry of its principal if that is sooner. A statement
 * that is still queued then has no effect and fails with DEADLINE_EXCEEDED; `expiredInQueue` distinguishes the two cases.
 */
export function statementDeadline(call: Call): Deadline {
  const { goodUntilMs } = call.principal;
  if (call.atMs <= goodUntilMs) return call;
  return {
    atMs: goodUntilMs,
    get cancelled() {
      return call.cancelled;
    },
  };
}

/** Whether a request had no effect because the principal expired while the request was queued. The caller still waits. */
export function expiredInQueue(settled: Settled<unknown>, call: Call): boolean {
  return settled instanceof Rejected && isRefusal(settled.error, "DEADLINE_EXCEEDED") && !isExpired(call);
}

/**
 * Wraps a handler so that every request is decided by a principal that is current. Where the principal has expired, or expires
 * while a request is queued, the call is authorized again and the request is handled again. The handler uses
 * `statementDeadline`.
 */
export function withCurrentPrincipal<Request, Response>(
  handle: BatchHandler<Request, Response>,
): BatchHandler<Request, Response> {
  async function retry(
    requests: readonly Settled<Request>[],
    call: Call,
  ): Promise<readonly Settled<Response>[]> {
    let current: Call;
    try {
      current = await call.again();
    } catch (error) {
      return requests.map(() => new Rejected(error));
    }
    return handleAll(requests, current);
  }

  async function handleAll(
    requests: readonly Settled<Request>[],
    call: Call,
  ): Promise<readonly Settled<Response>[]> {
    const settled = await handle(requests, call);
    if (!settled.some((each) => expiredInQueue(each, call))) return settled;
    const expired = indexesOf(settled, (each) => expiredInQueue(each, call));
    const again = expired.map((index) => requests[index] as Settled<Request>);
    return withReplaced(settled, expired, await retry(again, call));
  }

  return (requests, call) => (isOutdated(call) ? retry(requests, call) : handleAll(requests, call));
}

/**
 * Returns the commands of requests, of which those are parsed again that were rejected with PolicyNotLoaded: after their policies
 * were loaded. If the load fails, or lasts until the principal has expired, every request fails that was not refused before.
 */
export async function withLoadedPolicies<Request, Command>(
  requests: readonly Settled<Request>[],
  parsed: readonly Settled<Command>[],
  call: Call,
  parse: (request: Request, principal: Principal) => Command,
): Promise<readonly Settled<Command>[]> {
  if (!parsed.some(isNotLoaded)) return parsed;
  const { principal } = call;
  const missing = new Set(parsed.flatMap((each) => (isNotLoaded(each) ? [each.error.namespace] : [])));
  try {
    if (principal.role !== "OPERATOR") await principal.tenant.namespaces.load([...missing], call);
    // As for a request that was queued for so long: `withCurrentPrincipal` handles it again.
    if (isOutdated(call))
      throw new Refusal("DEADLINE_EXCEEDED", "The deadline passed before the namespace's policy was loaded.");
  } catch (error) {
    return parsed.map((each) =>
      each instanceof Rejected && !isNotLoaded(each) ? each : new Rejected(error),
    );
  }
  return mapSettled(requests, (request, index) => {
    const before = parsed[index] as Settled<Command>;
    if (isNotLoaded(before)) return parse(request, principal);
    if (before instanceof Rejected) throw before.error;
    return before;
  });
}

function isNotLoaded(settled: Settled<unknown>): settled is Rejected & { readonly error: PolicyNotLoaded } {
  return settled instanceof Rejected && settled.error instanceof PolicyNotLoaded;
}

/**
 * Loads the policies of those of the namespaces that the caller may use; returns undefined if they are loaded already. Invalid
 * names are skipped: the parsers refuse them.
 *
 * @throws Refusal as NamespacePolicies.load.
 */
export function loadPolicies(namespaces: readonly string[], call: Call): Promise<void> | undefined {
  const { principal } = call;
  if (principal.role === "OPERATOR") return undefined;
  const { tenant, namespaces: allowed } = principal;
  const missing: string[] = [];
  for (const namespace of new Set(namespaces)) {
    const isAllowed = NAMESPACE_PATTERN.test(namespace) && allowed?.has(namespace) !== false;
    if (isAllowed && !tenant.namespaces.isLoaded(namespace)) missing.push(namespace);
  }
  return missing.length === 0 ? undefined : tenant.namespaces.load(missing, call);
}
