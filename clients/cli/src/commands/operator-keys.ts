import {
  ApiKeySchema,
  CreateOperatorApiKeyResponseSchema,
  createOperator,
  RevokeOperatorApiKeyResponseSchema,
} from "@onceward/client/admin";
import type { Command } from "commander";
import { confirm, type YesOption } from "../confirm.ts";
import type { Host } from "../host.ts";
import { KEY_COLUMNS } from "../key-columns.ts";
import { type NewKeyOptions, withNewOperatorKey } from "../new-key.ts";
import { collectPages } from "../pages.ts";
import { sessions } from "../session.ts";
import { command, group, type LimitOption, withLimit, withYes } from "./group.ts";

/** `onceward operator keys …`: the operators' credentials. */
export function operatorKeyCommands(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return group("keys", "the operators' API keys", [
    withNewOperatorKey(
      command(
        "create",
        "Makes an operator's API key and prints its secret, this once. To rotate: make one, move over, revoke the other.",
        "operator keys create --label 'on call' --expires 90d > operator.key",
      ),
    ).action(
      asOperator(async ({ client, call, output }, options: Pick<NewKeyOptions, "label" | "expires">) => {
        const { label = "", expires } = options;
        const apiKey = { label, ...(expires && { expiresAt: expires }) };
        const reply = await client.createOperatorApiKey({ apiKey }, call);
        output.remark(`Key ${reply.apiKey?.id}; its secret is shown this once:\n`);
        output.message(CreateOperatorApiKeyResponseSchema, reply, () => `${reply.secret}\n`);
      }),
    ),
    withLimit(
      command(
        "list",
        "Lists them, revoked and expired ones too, the newest first; not the one that the server is configured with.",
        "operator keys list",
      ),
    ).action(
      asOperator(async ({ client, call, output }, { limit }: LimitOption) => {
        const listed = await collectPages(limit, async (page) => {
          const { apiKeys, nextPageToken } = await client.listOperatorApiKeys(page, call);
          return { items: apiKeys, nextPageToken };
        });
        output.list(ApiKeySchema, listed, [
          KEY_COLUMNS.id,
          KEY_COLUMNS.label,
          KEY_COLUMNS.created,
          KEY_COLUMNS.ends,
        ]);
      }),
    ),
    withYes(
      command(
        "revoke <key>",
        "Revokes an operator's API key by its id: it stops working on every replica within 10 s.",
        "operator keys revoke 7k2m9q4x1c8v5b3n",
      ),
    ).action(
      asOperator(async ({ client, call, output }, id: string, options: YesOption) => {
        await confirm(host, options, `Revoke operator's key ${id}?`);
        const reply = await client.revokeOperatorApiKey({ id }, call);
        output.message(
          RevokeOperatorApiKeyResponseSchema,
          reply,
          () => `Revoked key ${id}; every replica follows within 10 s.\n`,
        );
      }),
    ),
  ]);
}
