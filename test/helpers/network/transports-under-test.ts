import { TRANSPORT_NAMES, type TransportName } from "../calls/clients.ts";
import { isOtherPostgres } from "../database/database.ts";

/**
 * /** The transport of tests whose subject lies behind the pipeline, which answers the same over every
 * transport. Tests of what a transport carries (fields, errors, credentials, deadlines, cancellation) run
 * over all transports.
 */
export const ONE_TRANSPORT: readonly TransportName[] = ["native gRPC"];

/**
 * Returns the transports of a test: only one in runs with another Postgres, which no transport depends on.
 */
export function transportsUnderTest(): readonly TransportName[] {
  return isOtherPostgres() ? ONE_TRANSPORT : TRANSPORT_NAMES;
}
