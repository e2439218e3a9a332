import { Agent } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { IdentityService } from "../../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import { OperatorService } from "../../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { CATALOGUE, type Reason } from "../../../server/src/domain/refusal.ts";
import type { Role } from "../../../server/src/domain/tenant.ts";
import { unaryMethods } from "../../../server/src/transport/route.ts";
import { callRaw, frameOf, grpcHeaders } from "../network/raw-grpc.ts";
import { post } from "../network/raw-http.ts";
import { createApiKey, createTenant } from "../servers/tenants.ts";
import type { Target } from "./hostility.ts";
import type { Encoded } from "./wire-values.ts";

/** Every unary RPC as a row of `test.each`: its title and its descriptor. */
export const RPCS: readonly (readonly [title: string, method: DescMethod])[] = [
  IdempotencyService,
  TenantAdminService,
  OperatorService,
  IdentityService,
]
  .flatMap(unaryMethods)
  .map((method) => [`${method.parent.name}.${method.name}`, method] as const);

/** The answer to a request; `code` is a name of google.rpc.Code, such as INVALID_ARGUMENT. */
export interface HostileAnswer {
  readonly code: string;
  readonly reason: string | undefined;
  readonly fields: readonly string[];
}

/**
 * A request in one of the formats. The format decides the transport: binary is native gRPC, JSON is Connect.
 */
export interface HostileCall {
  readonly format: keyof Encoded;
  readonly body: Buffer;
}

/** A caller that may call an RPC, and its own tenant. */
export interface HostileCaller {
  readonly tenant: string;
  call(call: HostileCall): Promise<HostileAnswer>;
}

const ROLES: Readonly<Record<string, Role>> = {
  [IdempotencyService.typeName]: "CALLER",
  [TenantAdminService.typeName]: "TENANT_ADMIN",
  [OperatorService.typeName]: "OPERATOR",
};

/** Returns the role that may call an RPC. */
export function roleOf(method: DescMethod): Role {
  return ROLES[method.parent.typeName] ?? "CALLER";
}

/** Keeps connections open until the test process ends, and opens no more of them than a browser does. */
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

/** @see HostileCaller */
export async function createCaller(
  { database, server }: Target,
  session: ClientHttp2Session,
  method: DescMethod,
): Promise<HostileCaller> {
  const role = roleOf(method);
  const { id, name } = await createTenant(database);
  const apiKey = await createApiKey(database, { role, ...(role !== "OPERATOR" && { tenantId: id }) });
  const path = `/${method.parent.typeName}/${method.name}`;
  return {
    tenant: name,
    async call({ format, body }) {
      if (format === "binary")
        return described(await callRaw(session, grpcHeaders(path, apiKey), frameOf(body)));
      const answer = await post(
        server.httpPort,
        path,
        { contentType: "application/json", apiKey, agent },
        body,
      );
      if (!("body" in answer)) return described(answer);
      for (const item of itemErrors(answer.body)) expectDefinite(item);
      return { code: "OK", reason: undefined, fields: [] };
    },
  };
}

/** Returns the formats that can express a request. */
export function callsOf({ binary, json }: Encoded): readonly HostileCall[] {
  return [
    ...(binary === undefined ? [] : [{ format: "binary", body: Buffer.from(binary) } as const]),
    ...(json === undefined ? [] : [{ format: "json", body: Buffer.from(json) } as const]),
  ];
}

function described({ code, reason, fields }: HostileAnswer): HostileAnswer {
  return { code: code.replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase(), reason, fields };
}

function itemErrors(body: Buffer): readonly HostileAnswer[] {
  const { items = [] }: { items?: readonly { error?: ItemError }[] } = JSON.parse(body.toString());
  return items.flatMap(({ error }) => {
    if (error === undefined) return [];
    const reason = error.reason?.replace("ERROR_REASON_", "");
    const code = CATALOGUE[reason as Reason];
    return [{ code, reason, fields: error.fieldViolations?.map(({ field }) => field) ?? [] }];
  });
}

interface ItemError {
  readonly reason?: string;
  readonly fieldViolations?: readonly { readonly field: string }[];
}

/** Reasons that do not depend on a request's contents. A key that another call holds for a moment does. */
const INDEFINITE = new Set(["INTERNAL", "UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"]);

/** Fails unless the answer is OK, or an error of the catalogue with all its details. */
export function expectDefinite({ code, reason, fields }: HostileAnswer): void {
  if (code === "OK") return;
  expect(code).toBe(CATALOGUE[reason as Reason]);
  if (reason !== "RECORD_CONTENDED") expect(INDEFINITE).not.toContain(code);
  if (reason === "INVALID_REQUEST") expect(fields).not.toEqual([]);
}
