import { create } from "@bufbuild/protobuf";
import {
  ApiKeySchema,
  CreateApiKeyResponseSchema,
  KeyQualitySchema,
  RevokeApiKeyResponseSchema,
} from "@onceward/client/proto";
import type { Command } from "commander";
import { createTenantAdmin } from "../clients.ts";
import { KEY_COLUMNS } from "../columns.ts";
import type { YesOption } from "../confirm.ts";
import type { Host } from "../host.ts";
import { describeQuality, QUALITY_COLUMNS } from "../key-quality-text.ts";
import { requireNamespace } from "../known-names.ts";
import { type NewKeyOptions, newKey, roleName, withNewKey } from "../new-key.ts";
import { collectPages } from "../pages.ts";
import { confirmRevocation } from "../revocation.ts";
import { createWithSecret } from "../secret-file.ts";
import { sessions } from "../session.ts";
import { command, group, type LimitOption, withLimit, withYes } from "./group.ts";

/** Returns `onceward keys …`: the tenant's API keys, and the quality of its idempotency keys. */
export function keyCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("keys", [
    withNewKey(
      command(
        "create",
        "Creates an API key and prints its secret, only once. To rotate: create a key, switch to it, revoke the old one.",
        "keys create --role caller --label payments --out payments.key",
        "keys create --role caller --namespace charges --namespace refunds --expires 90d",
        "keys create --role admin --label 'on call' --json",
      ),
    ).action(
      asAdmin(async ({ client, call, output }, options: NewKeyOptions) => {
        const create = () => client.createApiKey({ apiKey: newKey(options) }, call);
        await createWithSecret(options.out, output, create, (reply) => {
          output.remark(`Key ${reply.apiKey?.id}; its secret is shown only now:\n`);
          output.message(CreateApiKeyResponseSchema, reply, () => `${reply.secret}\n`);
        });
      }),
    ),
    withLimit(
      command(
        "list",
        "Lists API keys, revoked and expired ones too, newest first, with the hour of their last use.",
        "keys list",
      ),
    ).action(
      asAdmin(async ({ client, call, output }, { limit }: LimitOption) => {
        const listed = await collectPages(limit, "apiKeys", (page) => client.listApiKeys(page, call));
        output.list(ApiKeySchema, listed, [
          KEY_COLUMNS.id,
          ["ROLE", ({ role }) => roleName(role)],
          KEY_COLUMNS.label,
          ["NAMESPACES", ({ namespaces }) => namespaces.join(",") || "(all)", "wide"],
          KEY_COLUMNS.created,
          KEY_COLUMNS.lastUsed,
          KEY_COLUMNS.ends,
        ]);
      }),
    ),
    withYes(
      command(
        "revoke <key>",
        "Revokes an API key by its id: it stops working on every replica within 10 s.",
        "keys revoke 7k2m9q4x1c8v5b3n",
      ),
    ).action(
      asAdmin(async (session, id: string, options: YesOption) => {
        const { client, call, output } = session;
        await confirmRevocation(session, options, id, (page) => client.listApiKeys(page, call));
        const reply = await client.revokeApiKey({ id }, call);
        output.message(
          RevokeApiKeyResponseSchema,
          reply,
          () => `Revoked key ${id}; every replica follows within 10 s.\n`,
        );
      }),
    ),
    qualityCommand(host),
  ]);
}

function qualityCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withLimit(
    command(
      "quality [namespace]",
      "Shows suspected defects in how callers make their idempotency keys. Without a namespace: of all.",
      "keys quality charges",
    ),
  ).action(
    asAdmin(async ({ client, call, output }, namespace: string | undefined, { limit }: LimitOption) => {
      if (namespace !== undefined) {
        const { namespaces } = await client.getKeyQuality({ namespace }, call);
        if (!namespaces.some(({ claims }) => claims > 0n)) await requireNamespace(client, call, namespace);
        const [quality = create(KeyQualitySchema, { namespace })] = namespaces;
        return output.message(KeyQualitySchema, quality, () => describeQuality(quality));
      }
      const listed = await collectPages(limit, "namespaces", (page) => client.getKeyQuality(page, call));
      output.list(KeyQualitySchema, listed, QUALITY_COLUMNS);
    }),
  );
}
