import type { ChangeListener } from "../../auth/authenticate.ts";
import type { Handlers } from "../../calls/call.ts";
import type { OperatorService } from "../../gen/onceward/v1/operator_pb.ts";
import type { Pool } from "../../store/pool.ts";
import type { PageTokens } from "../pages.ts";
import { createOperatorKeyHandlers } from "./operator-keys.ts";
import { createServerInfoHandlers } from "./server-info.ts";
import { createTenantStateHandlers } from "./tenant-states.ts";
import { createTenantHandlers } from "./tenants.ts";

/** The parts that OperatorService needs. */
export interface OperatorOptions {
  readonly pool: Pool;
  readonly pageTokens: PageTokens;
  /** Receives every change, after its commit. */
  readonly changes: ChangeListener;
  /** Keys the digests of API keys. */
  readonly pepper: string;
  /** The configuration without its secrets. */
  readonly redactedConfig: Readonly<Record<string, string>>;
  /** Returns the parts that the replica currently works without. */
  readonly degradedReasons: () => readonly string[];
}

/** Returns OperatorService. `operator.proto` describes each RPC. */
export function createOperatorService(options: OperatorOptions): Handlers<typeof OperatorService> {
  return {
    ...createTenantHandlers(options),
    ...createTenantStateHandlers(options),
    ...createOperatorKeyHandlers(options),
    ...createServerInfoHandlers(options),
  };
}
