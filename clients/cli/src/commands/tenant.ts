import { TenantSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { readFieldOptions } from "../arguments.ts";
import { createTenantAdmin } from "../clients.ts";
import type { Host } from "../host.ts";
import { changePolicy, type PolicyChangeOptions, withPolicyChange } from "../policy-change.ts";
import { POLICY_FIELDS } from "../policy-fields.ts";
import { tenantPolicy } from "../policy-targets.ts";
import { sessions } from "../session.ts";
import { describeTenant } from "../tenant-text.ts";
import { command, group } from "./group.ts";

/** Returns `onceward tenant …`: the tenant and its policy. */
export function tenantCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("tenant", [
    command("show", "Shows the tenant.", "tenant show", "tenant show --json").action(
      asAdmin(async ({ client, call, output }, _options: object) => {
        const { tenant } = await client.getTenant({}, call);
        if (tenant !== undefined) output.message(TenantSchema, tenant, () => describeTenant(tenant));
      }),
    ),
    withPolicyChange(
      command(
        "set",
        "Sets the policy of all namespaces that don't set their own. Shows the effect, and asks.",
        "tenant set --key-retention 7d",
        "tenant set --on-lease-expiry hold --max-lease 1h --yes",
        "tenant set --result-retention inherit --dry-run",
      ),
    ).action(
      asAdmin(async (session, options: PolicyChangeOptions) => {
        const fields = readFieldOptions(POLICY_FIELDS, { ...options });
        await changePolicy(session, tenantPolicy(session), fields, options);
      }),
    ),
  ]);
}
