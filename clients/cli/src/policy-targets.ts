import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import {
  PolicySchema,
  UpdateNamespaceResponseSchema,
  UpdateTenantResponseSchema,
} from "@onceward/client/proto";
import type { FieldsSet } from "./arguments.ts";
import { EXIT, exitCodeOf } from "./failure.ts";
import { countLateClaims } from "./late-keys.ts";
import type { PolicyHolder, PolicyTarget } from "./policy-change.ts";
import type { PolicyInit } from "./policy-fields.ts";
import { asFailure, type Session } from "./session.ts";

const NO_FIELDS: FieldsSet<PolicyInit> = { init: {}, paths: [] };

/** Returns the tenant's policy, which applies to all namespaces that don't set their own. */
export function tenantPolicy({ client, call, output }: Session<TenantAdmin>): PolicyTarget {
  return {
    title: "the tenant",
    name: "shorter",
    countLateClaims: () => countLateClaims({ client, call }, ""),
    async read() {
      const { tenant } = await client.getTenant({}, call);
      return {
        policy: tenant?.policy,
        effectivePolicy: tenant?.effectivePolicy,
        etag: tenant?.etag ?? "",
      };
    },
    async update(fields, { etag, ...settings }) {
      const { policy, updateMask } = policyUpdate(fields);
      const reply = await client.updateTenant({ tenant: { policy, etag }, updateMask, ...settings }, call);
      const { tenant: holder, effect, job } = reply;
      return {
        holder,
        effect,
        job,
        print: (text) => output.message(UpdateTenantResponseSchema, reply, text),
      };
    },
  };
}

/** Returns a namespace's policy. Changing the policy of an undeclared namespace declares it. */
export function namespacePolicy({ client, call, output }: Session<TenantAdmin>, name: string): PolicyTarget {
  const target: PolicyTarget = {
    title: `namespace ${name}`,
    name,
    countLateClaims: () => countLateClaims({ client, call }, name),
    async read() {
      const declared = await findNamespace({ client, call }, name);
      if (declared !== undefined) return declared;
      const asked = await target.update(NO_FIELDS, {
        validateOnly: true,
        applyToExisting: false,
        etag: "",
      });
      // An undeclared namespace has no etag.
      return { effectivePolicy: asked.holder?.effectivePolicy, etag: "" };
    },
    async update(fields, { etag, ...settings }) {
      const { policy, updateMask } = policyUpdate(fields);
      const namespace = { name, policy, etag };
      const request = {
        namespace,
        updateMask,
        allowMissing: true,
        ...settings,
      };
      const reply = await client.updateNamespace(request, call);
      const { namespace: holder, effect, job } = reply;
      return {
        holder,
        effect,
        job,
        print: (text) => output.message(UpdateNamespaceResponseSchema, reply, text),
      };
    },
  };
  return target;
}

async function findNamespace(
  { client, call }: Pick<Session<TenantAdmin>, "client" | "call">,
  name: string,
): Promise<PolicyHolder | undefined> {
  try {
    return (await client.getNamespace({ name }, call)).namespace;
  } catch (error) {
    if (exitCodeOf(await asFailure(error, "")) === EXIT.notFound) return undefined;
    throw error;
  }
}

function policyUpdate({ init, paths }: FieldsSet<PolicyInit>) {
  return {
    policy: create(PolicySchema, init),
    updateMask: create(FieldMaskSchema, {
      paths: paths.map((path) => `policy.${path}`),
    }),
  };
}
