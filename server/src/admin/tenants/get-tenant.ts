import { create } from "@bufbuild/protobuf";
import { findTenantResource } from "../../database/tenants/tenants.ts";
import { credentialInvalid } from "../../domain/refusal.ts";
import { Violations } from "../../domain/violations.ts";
import { OperatorServiceGetTenantResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { GetTenantResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { administeredTenant } from "../own-tenant.ts";
import type { OperatorRpc, TenantRpc } from "../services.ts";
import { tenantNotFound } from "./locked-tenant.ts";
import { tenantMessage } from "./tenant-messages.ts";

/** Returns the caller's tenant. */
export const getTenant: TenantRpc<"getTenant"> = async (_request, call, { pool }) => {
  const tenant = await findTenantResource(pool.of(call), administeredTenant(call).id);
  if (tenant === undefined) throw credentialInvalid();
  return create(GetTenantResponseSchema, { tenant: tenantMessage(tenant) });
};

/** Returns a tenant to an operator. */
export const getAnyTenant: OperatorRpc<"getTenant"> = async ({ name }, _call, { pool }) => {
  const violations = new Violations();
  violations.name("name", name);
  violations.throwIfAny();
  const tenant = await findTenantResource(pool, name);
  if (tenant === undefined) throw tenantNotFound();
  return create(OperatorServiceGetTenantResponseSchema, { tenant: tenantMessage(tenant) });
};
