import { Agent } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { OperatorService } from "../../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { CATALOGUE, type Reason } from "../../../server/src/domain/refusal.ts";
import type { Role } from "../../../server/src/domain/tenant.ts";
import { unaryMethods } from "../../../server/src/edge/route.ts";
import { callRaw, frameOf, grpcHeaders } from "../network/raw-grpc.ts";
import { post } from "../network/raw-http.ts";
import { createApiKey, createTenant } from "../servers/tenants.ts";
import type { Target } from "./hostility.ts";
import type { Encoded } from "./wire-values.ts";

/** Every unary RPC, as a test's title and what it is. */
export const RPCS: readonly (readonly [title: string, method: DescMethod])[] = [
  IdempotencyService,
  TenantAdminService,
  OperatorService,
]
  .flatMap(unaryMethods)
  .map((method) => [`${method.parent.name}.${method.name}`, method] as const);

/** What a request was answered with; `code` is that of google.rpc.Code, such as INVALID_ARGUMENT. */
export interface HostileAnswer {
  readonly code: string;
  readonly reason: string | undefined;
  readonly fields: readonly string[];
}

/** A request in one of the formats, which is the transport's too: binary is native gRPC, JSON is Connect. */
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

/** The role that an RPC is for. */
export function roleOf(method: DescMethod): Role {
  return ROLES[method.parent.typeName] ?? "CALLER";
}

/** Ends with the process that runs the tests, and takes no more connections than a browser. */
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

/** The formats that can say a request. */
export function callsOf({ binary, json }: Encoded): readonly HostileCall[] {
  return [
    ...(binary === undefined ? [] : [{ format: "binary", body: Buffer.from(binary) } as const]),
    ...(json === undefined ? [] : [{ format: "json", body: Buffer.from(json) } as const]),
  ];
}

function described({ code, reason, fields }: HostileAnswer): HostileAnswer {
  return { code: code.replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase(), reason, fields };
}

/** What a batch says of its items that were refused. */
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

/** Reasons that are no answer to a request's contents; a key that another call holds for a moment is. */
const INDEFINITE = new Set(["INTERNAL", "UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"]);

/** Fails unless the answer is OK, or one of the catalogue with everything that belongs to it. */
export function expectDefinite({ code, reason, fields }: HostileAnswer): void {
  if (code === "OK") return;
  expect(code).toBe(CATALOGUE[reason as Reason]);
  if (reason !== "RECORD_CONTENDED") expect(INDEFINITE).not.toContain(code);
  if (reason === "INVALID_REQUEST") expect(fields).not.toEqual([]);
}
