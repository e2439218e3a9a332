import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { type ItemRequest, type ItemResponse, runBatch } from "../helpers/calls/batches.ts";
import { comparable } from "../helpers/calls/comparable.ts";
import { runOneByOne } from "../helpers/calls/one-by-one.ts";
import { anyOperation, type Operation, requestOf } from "../helpers/calls/operations.ts";
import { relativeTimes } from "../helpers/database/time.ts";
import { describeContractOnce } from "../helpers/servers/contract.ts";
import { newCallerInMemory, type SharedCaller } from "../helpers/servers/shared-contract.ts";
import type { PolicyColumns } from "../helpers/servers/tenants.ts";

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
