import { type WhoAmIResponse, WhoAmIResponse_Kind, WhoAmIResponseSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { createIdentity } from "../clients.ts";
import type { Host } from "../host.ts";
import { roleName } from "../new-key.ts";
import { enumName } from "../output.ts";
import { sessions } from "../session.ts";
import { renderFacts } from "../table.ts";
import { formatMoment } from "../times.ts";
import { command } from "./group.ts";

/** Returns `onceward whoami`. */
export function whoAmICommand(host: Host): Command {
  const asAnyone = sessions(host, createIdentity);
  return command(
    "whoami",
    "Shows what the service knows of your credential: its role, tenant, namespaces and expiry. Of a profile with several keys, the first; onceward doctor shows all.",
    "whoami",
    "whoami --profile staging --json",
  ).action(
    asAnyone(async ({ client, call, output }, _options: object) => {
      const identity = await client.whoAmI({}, call);
      output.message(WhoAmIResponseSchema, identity, () => describe(identity));
    }),
  );
}

function describe({
  kind,
  actor,
  role,
  tenant,
  namespaces,
  allNamespaces = true,
  expiresAt,
  consoleOrigin,
}: WhoAmIResponse): string {
  return renderFacts([
    ["kind", enumName(WhoAmIResponse_Kind, kind)],
    ["actor", actor || "-"],
    ["role", roleName(role)],
    ["tenant", tenant || "-"],
    ["namespaces", namespaces.join(", ") || (allNamespaces ? "(all)" : "(none)")],
    ["expires", expiresAt === undefined ? "never" : formatMoment(expiresAt)],
    ["console", consoleOrigin || "-"],
  ]);
}
