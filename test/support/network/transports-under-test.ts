import { TRANSPORT_NAMES, type TransportName } from "../calls/clients.ts";
import { isOtherPostgres } from "../database/database.ts";
import { isEncryptedRun } from "../servers/encryption.ts";

/**
 * /** The transport of tests whose subject lies behind the pipeline, which answers the same over every
 * transport. Tests of what a transport carries (fields, errors, credentials, deadlines, cancellation) run
 * over all transports.
 */
export const ONE_TRANSPORT: readonly TransportName[] = ["native gRPC"];

/**
 * Returns the transports of a test: only one in runs with another Postgres or with encryption at rest, on which
 * no transport depends.
 */
export function transportsUnderTest(): readonly TransportName[] {
  return isOtherPostgres() || isEncryptedRun() ? ONE_TRANSPORT : TRANSPORT_NAMES;
}
