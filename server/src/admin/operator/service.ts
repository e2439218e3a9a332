import type { ChangeListener } from "../../auth/authenticate.ts";
import type { Handlers } from "../../calls/call.ts";
import type { OperatorService } from "../../gen/onceward/v1/operator_pb.ts";
import type { Pool } from "../../store/pool.ts";
import type { PageTokens } from "../pages.ts";
import { createOperatorKeyHandlers } from "./operator-keys.ts";
import { createServerInfoHandlers } from "./server-info.ts";
import { createTenantStateHandlers } from "./tenant-states.ts";
import { createTenantHandlers } from "./tenants.ts";

/** What OperatorService needs. */
export interface OperatorOptions {
  readonly pool: Pool;
  readonly pageTokens: PageTokens;
  /** Told of every change, once it is committed. */
  readonly changes: ChangeListener;
  /** Keys the digests of API keys. */
  readonly pepper: string;
  /** The configuration as it may be shown. */
  readonly redactedConfig: Readonly<Record<string, string>>;
  /** What the replica does without at the moment. */
  readonly degradedReasons: () => readonly string[];
}

/** OperatorService: what each RPC promises stands in `operator.proto`. */
export function createOperatorService(options: OperatorOptions): Handlers<typeof OperatorService> {
  return {
    ...createTenantHandlers(options),
    ...createTenantStateHandlers(options),
    ...createOperatorKeyHandlers(options),
    ...createServerInfoHandlers(options),
  };
}
