import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { type ItemRequest, type ItemResponse, runBatch } from "../support/calls/batches.ts";
import { comparable } from "../support/calls/comparable.ts";
import { runOneByOne } from "../support/calls/one-by-one.ts";
import { failure, fingerprintOf, seconds, success } from "../support/calls/verbs.ts";
import { relativeTimes } from "../support/database/time.ts";
import { describeContractOnce } from "../support/servers/contract.ts";
import { newCallerInMemory, type SharedCaller } from "../support/servers/shared-contract.ts";
import type { PolicyColumns } from "../support/servers/tenants.ts";

/** A call on one of a few keys, as clients send it; `token` selects one of the key's claims. */
interface Operation {
  readonly kind: "claim" | "complete" | "release" | "extendLease" | "lookup";
  readonly namespace: string;
  readonly key: string;
  readonly token: keyof typeof TOKENS;
  readonly fingerprint: Uint8Array;
  readonly claimId: string;
  readonly text: string;
  readonly acceptAmbiguous: boolean;
  /** Whether a claim completes its record itself. */
  readonly completes: boolean;
  readonly leaseS: number | undefined;
  readonly result: keyof typeof RESULTS;
  readonly checkpoint: string | undefined;
}

/** Choices of a token among those that were granted for the key, oldest first. */
const TOKENS = {
  current: (granted: readonly bigint[]) => granted.at(-1),
  older: (granted: readonly bigint[]) => granted.at(-2),
  "never granted": () => undefined,
};
/** A token that no claim gets. */
const NEVER_GRANTED = 2n ** 62n;

/** Payloads under a policy that allows 10 bytes. */
const RESULTS = {
  one: success("one"),
  other: { ...success("other"), contentType: "text/plain", metadata: { a: "1" } },
  failure: failure("declined"),
  "too large": success("eleven byte"),
};

const NONE = new Uint8Array(0);

/** Mostly on one key, so that its history gets long. Times are multiples of 10 s, or are refused: see `relativeTimes`. */
const anyOperation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.oneof(
    fc.constant("claim"),
    fc.constantFrom("complete", "complete", "release", "release", "extendLease", "extendLease", "lookup"),
  ),
  namespace: mostly("charges", "mails"),
  key: mostly("a", "b"),
  token: mostly("current", "older", "never granted"),
  fingerprint: mostly(fingerprintOf("one"), fingerprintOf("other"), NONE),
  claimId: fc.constantFrom("", "call-1", "call-2"),
  text: fc.constantFrom("", "text"),
  acceptAmbiguous: fc.boolean(),
  completes: mostly(false, true),
  leaseS: mostly(undefined, 10, 20, 60, 61),
  result: mostly("one", "other", "failure", "too large"),
  checkpoint: mostly(undefined, "charged", "mailed"),
} as const);

/** Generates the first value in three of four cases. */
function mostly<const T>(usual: T, ...others: T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, fc.constantFrom(...others));
}

/** Returns an operation as a request. `tokens` are those granted for its key, oldest first. */
function requestOf(operation: Operation, granted: readonly bigint[]): ItemRequest {
  const { namespace, key, fingerprint, claimId, acceptAmbiguous, completes, text, leaseS } = operation;
  const id = { namespace, key };
  const held = { ...id, fencingToken: TOKENS[operation.token](granted) ?? NEVER_GRANTED };
  const lease = leaseS === undefined ? {} : { lease: seconds(leaseS) };
  switch (operation.kind) {
    case "claim":
      return {
        case: "claim",
        value: {
          ...id,
          ...{ fingerprint, claimId, owner: text, acceptAmbiguous },
          ...lease,
          ...(completes && { completion: {} }),
        },
      };
    case "complete":
      return { case: "complete", value: { ...held, result: RESULTS[operation.result] } };
    case "release":
      return { case: "release", value: { ...held, reason: text } };
    case "extendLease": {
      const { checkpoint: name } = operation;
      return {
        case: "extendLease",
        value: { ...held, ...lease, ...(name !== undefined && { checkpoint: { name } }) },
      };
    }
    case "lookup":
      return { case: "lookup", value: id };
  }
}

/** The next step. A sweep deletes rows of the server; the answers must stay equal. */
type Step =
  | { readonly kind: "calls"; readonly operations: readonly AgedOperation[]; readonly inBatch: boolean }
  | { readonly kind: "timePasses"; readonly seconds: number }
  | { readonly kind: "sweep" };

/** An operation, and how long ago its key was created. */
interface AgedOperation extends Operation {
  readonly keyAgeS: number | undefined;
}

/** Ages between the retentions of `anyPolicy`, and times that are ahead: by less than is allowed, and by more. */
const anyAgeS = fc.constantFrom(undefined, 0, 30, 90, 1000, 5000, -200, -1000);
const anyAgedOperation: fc.Arbitrary<AgedOperation> = fc
  .tuple(anyOperation, anyAgeS)
  .map(([operation, keyAgeS]) => ({ ...operation, keyAgeS }));

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("calls"),
      operations: fc.array(anyAgedOperation, { minLength: 1, maxLength: 5 }),
      inBatch: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("timePasses"),
      seconds: fc.constantFrom(10, 10, 10, 20, 30, 60, 110, 4000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("sweep") }) },
);

const anyPolicy: fc.Arbitrary<PolicyColumns> = fc.record(
  {
    on_lease_expiry: fc.constantFrom("RECLAIM", "HOLD"),
    key_retention_s: fc.constantFrom(60, 120, 3600),
    result_retention_s: fc.constantFrom(60, 90),
    failure_retention_s: fc.constantFrom(60, 5000),
    default_lease_ms: fc.constantFrom(10_000, 90_000),
    require_fingerprint: fc.boolean(),
    late_keys: fc.constantFrom("RUN", "REFUSE", "REQUIRE_TIME"),
  },
  { requiredKeys: ["on_lease_expiry"] },
);

/** Runs the steps, and returns every call's response, with its times relative to the time of its arrival. */
async function take(caller: SharedCaller, steps: readonly Step[]): Promise<unknown[]> {
  const responses: unknown[] = [];
  const granted = new Map<string, bigint[]>();
  for (const step of steps) {
    if (step.kind === "timePasses") await caller.timePasses(step.seconds);
    else if (step.kind === "sweep") await caller.sweep();
    else {
      // Outside a batch, an operation may use the token that the previous one was granted.
      const turns = step.inBatch ? [step.operations] : step.operations.map((operation) => [operation]);
      for (const turn of turns) {
        const requests = turn.map((operation) => agedRequest(operation, granted, caller.nowMs()));
        const run = step.inBatch ? runBatch : runOneByOne;
        const answers = await run(caller.client, requests);
        turn.forEach((operation, index) => {
          noteGrant(granted, nameOf(operation), answers[index]);
        });
        responses.push(...answers.map((answer) => relativeTimes(withoutWords(answer), caller.nowMs())));
      }
    }
  }
  return responses;
}

/** Returns an operation as a request; a claim says when its key was created. */
function agedRequest(
  operation: AgedOperation,
  granted: ReadonlyMap<string, bigint[]>,
  nowMs: number,
): ItemRequest {
  const request = requestOf(operation, granted.get(nameOf(operation)) ?? []);
  const { keyAgeS } = operation;
  if (request.case !== "claim" || keyAgeS === undefined) return request;
  const keyCreatedAt = timestampFromMs(Math.round(nowMs) - keyAgeS * 1000);
  return { ...request, value: { ...request.value, keyCreatedAt } };
}

/**
 * An error without its words, which are the service's alone, and without the metadata of KEY_TOO_OLD, whose times differ between
 * the services.
 */
function withoutWords(response: ItemResponse): ItemResponse {
  if (response?.case !== "error") return response;
  const { value } = response;
  return {
    ...response,
    value: {
      ...value,
      message: "",
      fieldViolations: value.fieldViolations.map((each) => ({ ...each, description: "" })),
      ...(value.reason === ErrorReason.KEY_TOO_OLD && { metadata: {} }),
    },
  };
}

function nameOf({ namespace, key }: Operation): string {
  return `${namespace} ${key}`;
}

function noteGrant(granted: Map<string, bigint[]>, name: string, response: ItemResponse | undefined): void {
  if (response?.case !== "claim" || response.value.outcome.case !== "claimed") return;
  const { fencingToken } = response.value.outcome.value;
  const tokens = granted.get(name) ?? [];
  if (tokens.at(-1) !== fencingToken) granted.set(name, [...tokens, fencingToken]);
}

const HISTORIES = 40;

describeContractOnce("The in-memory Onceward answers as a server does", (contract) => {
  test("to any calls at any times", async () => {
    const history = fc.array(anyStep, { minLength: 5, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(anyPolicy, anyPolicy, history, async (tenantPolicy, ofCharges, steps) => {
        const policy = { ...tenantPolicy, max_result_bytes: 10, max_lease_ms: 60_000 };
        const onServer = await contract.newCaller(policy, { charges: ofCharges });
        const inMemory = await newCallerInMemory(policy, { charges: ofCharges });
        const keys = steps.flatMap((step) => (step.kind === "calls" ? step.operations.map(nameOf) : []));
        const expected = comparable(await take(onServer, steps), keys);
        expect(comparable(await take(inMemory, steps), keys)).toEqual(expected);
      }),
      { numRuns: HISTORIES },
    );
  }, 120_000);
});
