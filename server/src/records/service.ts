import type { BatchHandler, Call, Handlers } from "../access/call.ts";
import { onlyValue } from "../domain/operation.ts";
import type { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { createBatch } from "./batch/batch.ts";
import { type ClaimsOptions, createClaims } from "./claim/claim.ts";
import { completeSteps } from "./complete.ts";
import { extendLeaseSteps } from "./extend-lease.ts";
import { lookupSteps } from "./lookup.ts";
import type { RecordStore } from "./record-store.ts";
import { releaseSteps } from "./release.ts";
import { handlerOf } from "./steps.ts";

export interface IdempotencyOptions extends ClaimsOptions {
  readonly records: RecordStore;
  /** As SettlingOptions. */
  readonly onSettled: (name: string) => void;
}

/** Returns IdempotencyService. `idempotency.proto` describes each RPC. */
export function createIdempotencyService(options: IdempotencyOptions): Handlers<typeof IdempotencyService> {
  const { onOperation } = options;
  const { claim, claimAll } = createClaims(options);
  const complete = handlerOf(completeSteps(options), onOperation);
  const release = handlerOf(releaseSteps(options), onOperation);
  const extendLease = handlerOf(extendLeaseSteps(options), onOperation);
  const lookup = handlerOf(lookupSteps(options), onOperation);
  return {
    claim,
    complete: single(complete),
    release: single(release),
    extendLease: single(extendLease),
    lookup: single(lookup),
    batch: createBatch({ claim: claimAll, complete, release, extendLease, lookup }),
  };
}

/** Returns a handler of single requests. */
function single<Request, Response>(
  handleAll: BatchHandler<Request, Response>,
): (request: Request, call: Call) => Promise<Response> {
  return async (request, call) => onlyValue(await handleAll([request], call));
}
