import type { Onceward } from "@onceward/client";

/** A run that fails, started by a function that runs under another claim. */
export interface NestedFailure {
  /** The class of the error that `fail` rejects with. */
  readonly error: string;
  readonly name: string;
  readonly fail: (onceward: Onceward) => Promise<unknown>;
}

const namespace = "nested";

/** Every kind of error of a nested run that is not terminal. Each call uses a new key. */
export const NESTED_FAILURES: readonly NestedFailure[] = [
  {
    error: "CompletionError",
    name: "whose value can't be stored",
    fail: (onceward) => onceward.run<unknown>(newOperation(), () => 1n),
  },
  {
    error: "CompletionError",
    name: "whose claim was taken over",
    fail: (onceward) =>
      onceward.run(newOperation(), async (claim) => {
        const { key, fencingToken } = claim;
        await onceward.calls.release({ namespace, key, fencingToken });
        await onceward.calls.claim({ namespace, key });
      }),
  },
  {
    error: "InProgressError",
    name: "of an operation that is in progress",
    async fail(onceward) {
      const operation = newOperation();
      await onceward.calls.claim(operation);
      await onceward.run({ ...operation, waitMs: 0 }, () => {});
    },
  },
  {
    error: "FingerprintMismatchError",
    name: "of another request",
    async fail(onceward) {
      const operation = newOperation();
      await onceward.run({ ...operation, fingerprint: "first" }, () => {});
      await onceward.run({ ...operation, fingerprint: "second" }, () => {});
    },
  },
  {
    error: "ResultUnavailableError",
    name: "whose value is lost",
    async fail(onceward) {
      const operation = newOperation();
      await Promise.allSettled([onceward.run<unknown>(operation, () => 1n)]);
      await onceward.run(operation, () => {});
    },
  },
  {
    error: "InvalidRequestError",
    name: "without a key",
    fail: (onceward) => onceward.run({ namespace, key: "" }, () => {}),
  },
];

function newOperation() {
  return { namespace, key: crypto.randomUUID() };
}
