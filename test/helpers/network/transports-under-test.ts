import { TRANSPORT_NAMES, type TransportName } from "../calls/clients.ts";
import { isOtherPostgres } from "../database/database.ts";

/**
 * The transport of tests whose subject is behind the pipeline, which answers the same over every transport. Tests of what a
 * transport carries (fields, errors, credentials, deadlines, cancellation) run over all of them.
 */
export const ONE_TRANSPORT: readonly TransportName[] = ["native gRPC"];

/** Returns every transport, or one where the run is about another Postgres. */
export function transportsUnderTest(): readonly TransportName[] {
  return isOtherPostgres() ? ONE_TRANSPORT : TRANSPORT_NAMES;
}
