import type { Page } from "playwright-core";
import { expect } from "vitest";
import { Policy_OnLeaseExpiry } from "../../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { Result_Kind } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { ApiKey_Role } from "../../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { connectAdmin } from "../calls/admin.ts";
import { connectClient } from "../calls/clients.ts";
import { endLeases } from "../calls/records.ts";
import { bytes, grant, seconds } from "../calls/verbs.ts";
import type { TestDatabase } from "../database/database.ts";
import { createApiKey, createTenant, type TestTenant } from "../servers/tenants.ts";

/** The worst name that a namespace can have: it has only small letters, digits, dots, underscores and hyphens. */
export const HOSTILE_NAMESPACE = "constructor";

/**
 * Returns a text that runs a script if any part of the page takes it for HTML, a template or an address, and that
 * turns the direction of what follows. `field` says where it was planted. At most 128 bytes.
 */
export function hostileText(field: string): string {
  return `${hostileName(field)}\u202e\u2066`;
}

/** Does the same for a field that has only ASCII characters, such as the subject of a token. */
export function hostileName(field: string): string {
  return `javascript:struck=1//${field}<img src=struck onerror=struck=1><script>struck=1</script>"'{{1}}\${1}`;
}

/** Where hostile texts are, for the screens that show them. */
export interface HostileTenant {
  readonly tenant: TestTenant;
  readonly adminKey: string;
  readonly completedKey: string;
  readonly heldKey: string;
  readonly ambiguousKey: string;
  readonly releasedKey: string;
}

/** Creates a tenant whose users put a hostile text into every field that they can. */
export async function plantHostileTexts(server: Addresses, database: TestDatabase): Promise<HostileTenant> {
  const tenant = await createTenant(database);
  const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  const caller = connectClient(server, tenant.apiKey);
  const admin = connectAdmin(server, adminKey);
  const namespace = HOSTILE_NAMESPACE;
  await admin.updateNamespace({
    namespace: { name: namespace, policy: { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD } },
    updateMask: { paths: ["policy.on_lease_expiry"] },
    allowMissing: true,
  });
  const claim = async (name: string, lease?: number) => {
    const id = { namespace, key: hostileText(name) };
    const { fencingToken } = await grant(caller, {
      ...id,
      owner: hostileText(`${name}owner`),
      ...(lease !== undefined && { lease: seconds(lease) }),
    });
    const checkpoint = { name: hostileText(`${name}step`), state: bytes(hostileText(`${name}state`)) };
    await caller.extendLease({ ...id, fencingToken, checkpoint });
    return { ...id, fencingToken };
  };

  const ambiguous = await claim("ambiguous");
  await endLeases(database, tenant);
  const completed = await claim("completed");
  const metadata = { [hostileText("name")]: hostileText("value") };
  const payload = bytes(`<!doctype html>${hostileText("payload")}`);
  const result = { kind: Result_Kind.SUCCESS, contentType: "text/html", payload, metadata };
  await caller.complete({ ...completed, result });
  const released = await claim("released");
  await caller.release({ ...released, reason: hostileText("release") });
  const resolved = await claim("resolved");
  await admin.resolveRecord({
    ...{ namespace, key: resolved.key, fencingToken: resolved.fencingToken },
    resolution: { case: "release", value: {} },
    reason: hostileText("resolution"),
  });
  const held = await claim("held");
  const apiKey = { role: ApiKey_Role.CALLER, label: hostileText("label") };
  await admin.createApiKey({ apiKey });
  return {
    ...{ tenant, adminKey, completedKey: completed.key, heldKey: held.key },
    ...{ ambiguousKey: ambiguous.key, releasedKey: released.key },
  };
}

/** Expects that the page shows a hostile text as it is, and that no part of it became an element or ran. */
export async function expectHarmless(page: Page, field: string): Promise<void> {
  const text = hostileName(field);
  await expect
    .poll(() => page.evaluate(findTexts), { message: `${page.url()} shows ${field}` })
    .toContain(text);
  const struck = await page.evaluate(findStrikes);
  expect(struck, `${page.url()} took a text for code`).toEqual([]);
}

function findTexts(): string {
  const fields = [...document.querySelectorAll<HTMLInputElement>("input, textarea")];
  return [document.body.textContent, ...fields.map(({ value }) => value)].join("\n");
}

/** Returns the elements that only a hostile text can have made, and whether its script ran. */
function findStrikes(): readonly string[] {
  const made = document.querySelectorAll("[onerror], [src*=struck], [href*='struck=1'], script:not([src])");
  const linked = [...document.querySelectorAll<HTMLAnchorElement>("a[href]")].filter(
    ({ protocol }) => !["http:", "blob:"].includes(protocol),
  );
  const ran = "struck" in globalThis ? ["a script ran"] : [];
  return [...ran, ...[...made, ...linked].map(({ outerHTML }) => outerHTML.slice(0, 200))];
}
