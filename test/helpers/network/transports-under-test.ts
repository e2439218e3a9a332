import { TRANSPORT_NAMES, type TransportName } from "../calls/clients.ts";
import { isOtherPostgres } from "../database/database.ts";

/** What a test calls over: where a run is about another Postgres, one transport shows all that it changes. */
export function transportsUnderTest(): readonly TransportName[] {
  return isOtherPostgres() ? ["native gRPC"] : TRANSPORT_NAMES;
}
