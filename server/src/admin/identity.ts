import { create } from "@bufbuild/protobuf";
import type { Handlers } from "../access/call.ts";
import type { Config } from "../config/config.ts";
import { timestamp } from "../domain/violations.ts";
import {
  type IdentityService,
  WhoAmIResponse_Kind as Kind,
  WhoAmIResponseSchema,
} from "../gen/onceward/v1/identity_pb.ts";
import { ApiKey_Role } from "../gen/onceward/v1/tenant_pb.ts";

/** Returns IdentityService. `identity.proto` describes its RPC. */
export function createIdentityService({
  ONCEWARD_CONSOLE,
  ONCEWARD_CONSOLE_ORIGIN,
}: Pick<Config, "ONCEWARD_CONSOLE" | "ONCEWARD_CONSOLE_ORIGIN">): Handlers<typeof IdentityService> {
  const consoleOrigin = (ONCEWARD_CONSOLE && ONCEWARD_CONSOLE_ORIGIN) || "";
  return {
    whoAmI(_, { principal }) {
      const { role, actor, credential } = principal;
      return create(WhoAmIResponseSchema, {
        kind: credential === undefined ? Kind.ANONYMOUS : Kind[credential.kind],
        actor,
        consoleOrigin,
        role: ApiKey_Role[role],
        allNamespaces: principal.role !== "OPERATOR" && principal.namespaces === undefined,
        ...(principal.role !== "OPERATOR" && {
          tenant: principal.tenant.name,
          namespaces: [...(principal.namespaces ?? [])].sort(),
        }),
        ...(credential?.expiresAtMs !== undefined && { expiresAt: timestamp(credential.expiresAtMs) }),
      });
    },
  };
}
