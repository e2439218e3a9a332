import { newAsyncStorage } from "#async-storage";
import { refusedField } from "../errors/violations.ts";
import { formatIdempotencyKey } from "../keys/idempotency-key.ts";
import type { Calls } from "./calls.ts";
import type { Claim } from "./claim.ts";

/** A run whose function is being called, and the run around it. */
interface RunScope {
  readonly claim: Claim;
  /** Those of the run's client: the keys of another client may belong to another tenant. */
  readonly calls: Calls;
  /** False after the function has ended: code that it started and that still runs has no current claim. */
  isRunning: boolean;
  readonly around: RunScope | undefined;
}

/** Undefined in browsers and edge runtimes, where nothing knows in which function code runs. */
const scopes = newAsyncStorage<RunScope>();

/**
 * Refuses a run within the function of a run with the same key: it would wait until its own caller ends, which waits for it.
 * Browsers do not know this: such a run waits for `waitMs`.
 *
 * @throws InvalidRequestError.
 */
export function checkNotWithinItself(
  calls: Calls,
  { namespace, key }: Pick<Claim, "namespace" | "key">,
): void {
  for (let scope = scopes?.getStore(); scope !== undefined; scope = scope.around) {
    const { claim, isRunning } = scope;
    if (!isRunning || scope.calls !== calls || claim.namespace !== namespace || claim.key !== key) continue;
    throw refusedField(
      "key",
      "is held by the run whose function starts this one: use another key or namespace",
    );
  }
}

/** Calls a run's function, within which its claim is the current one. */
export async function callWithin<T>(
  calls: Calls,
  claim: Claim,
  fn: (claim: Claim) => T | Promise<T>,
): Promise<T> {
  if (scopes === undefined) return await fn(claim);
  const scope = { claim, calls, isRunning: true, around: scopes.getStore() };
  try {
    return await scopes.run(scope, () => fn(claim));
  } finally {
    scope.isRunning = false;
  }
}

/**
 * Returns the claim of the guarded function that calls the current code, also after awaits; of nested runs, the innermost. It is
 * for code that does not get the claim as an argument.
 *
 * @throws InvalidRequestError outside of a guarded function, once the function has ended, and in browsers and edge runtimes.
 */
export function currentClaim(): Claim {
  const claim = findCurrentClaim();
  if (claim === undefined) throw refusedField("currentClaim", "must be called within a guarded function");
  return claim;
}

/** Returns a caller of functions within the current scope, for frameworks that call a handler after their hook has returned. */
export function bindScope(): <T>(fn: () => T) => T {
  const scope = scopes?.getStore();
  return (fn) => (scopes === undefined || scope === undefined ? fn() : scopes.run(scope, fn));
}

/** Returns the header `Idempotency-Key` of an outgoing call with this name; undefined without a current claim. */
export function outgoingKey(name: () => string): string | undefined {
  const claim = findCurrentClaim();
  return claim && formatIdempotencyKey(claim.deriveKey(name()));
}

function findCurrentClaim(): Claim | undefined {
  const scope = scopes?.getStore();
  return scope?.isRunning ? scope.claim : undefined;
}
