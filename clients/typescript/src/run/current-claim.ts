import { refusedField } from "../errors/violations.ts";

/** A run whose function is being called, and the run around it. */
export interface RunScope {
  readonly namespace: string;
  readonly key: string;
  /** False once the function has ended: code that it left behind is no longer within it. */
  isRunning: boolean;
  readonly around: RunScope | undefined;
}

/** Knows, across awaits, in which run's function the current code is: an AsyncLocalStorage of Node's. */
export interface RunScopes {
  getStore(): RunScope | undefined;
  run<T>(scope: RunScope, fn: () => T): T;
}

/**
 * Refuses a run within the function of a run with the same key: it would wait until its own caller ends, which waits for it.
 *
 * @param scopes undefined where nothing knows them, as in browsers: such a run waits for `waitMs`.
 * @throws InvalidRequestError.
 */
export function checkNotWithinItself(
  scopes: RunScopes | undefined,
  { namespace, key }: Pick<RunScope, "namespace" | "key">,
): void {
  for (let scope = scopes?.getStore(); scope !== undefined; scope = scope.around) {
    if (!scope.isRunning || scope.namespace !== namespace || scope.key !== key) continue;
    throw refusedField(
      "key",
      "is held by the run whose function starts this one: use another key or namespace",
    );
  }
}

/** Calls a run's function within its scope. */
export async function callWithin<T>(
  scopes: RunScopes | undefined,
  { namespace, key }: Pick<RunScope, "namespace" | "key">,
  fn: () => T | Promise<T>,
): Promise<T> {
  if (scopes === undefined) return await fn();
  const scope = { namespace, key, isRunning: true, around: scopes.getStore() };
  try {
    return await scopes.run(scope, fn);
  } finally {
    scope.isRunning = false;
  }
}
