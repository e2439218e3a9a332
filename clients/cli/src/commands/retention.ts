import type { Command } from "commander";
import { readFieldOptions } from "../arguments.ts";
import { createTenantAdmin } from "../clients.ts";
import { UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { changePolicy, type PolicyChangeOptions, withPolicyChange } from "../policy-change.ts";
import { RETENTION_FIELDS } from "../policy-fields.ts";
import { namespacePolicy, tenantPolicy } from "../policy-targets.ts";
import { sessions } from "../session.ts";
import { command, group } from "./group.ts";

/** Returns `onceward retention …`: how long keys and results are remembered. */
export function retentionCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("retention", [
    withPolicyChange(
      command(
        "set [namespace]",
        "Sets retention. Shows how many records it would change and forget, and asks.",
        "retention set charges --key 7d --result 24h",
        "retention set charges --key 30d --apply-to-existing --yes",
        "retention set --tenant --failure inherit --dry-run",
      ).option("--tenant", "for all namespaces that don't set their own, instead of one"),
      RETENTION_FIELDS,
    ).action(
      asAdmin(
        async (
          session,
          name: string | undefined,
          options: PolicyChangeOptions & { readonly tenant?: true },
        ) => {
          if ((name === undefined) === (options.tenant === undefined)) {
            throw new UsageError("Give a namespace, or --tenant for all that don't set their own.");
          }
          const target = name === undefined ? tenantPolicy(session) : namespacePolicy(session, name);
          const fields = readFieldOptions(RETENTION_FIELDS, { ...options });
          await changePolicy(session, target, fields, options);
        },
      ),
    ),
  ]);
}
