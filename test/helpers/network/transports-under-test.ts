import { TRANSPORT_NAMES, type TransportName } from "../calls/clients.ts";
import { isOtherPostgres } from "../database/database.ts";

/**
 * Returns the transports of a test: only one in runs with another Postgres, which no transport depends on.
 */
export function transportsUnderTest(): readonly TransportName[] {
  return isOtherPostgres() ? ["native gRPC"] : TRANSPORT_NAMES;
}
