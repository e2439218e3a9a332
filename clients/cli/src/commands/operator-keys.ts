import {
  ApiKeySchema,
  CreateOperatorApiKeyResponseSchema,
  RevokeOperatorApiKeyResponseSchema,
} from "@onceward/client/proto";
import type { Command } from "commander";
import { createOperator } from "../clients.ts";
import { KEY_COLUMNS } from "../columns.ts";
import type { YesOption } from "../confirm.ts";
import type { Host } from "../host.ts";
import { type NewKeyOptions, withNewOperatorKey } from "../new-key.ts";
import { collectPages } from "../pages.ts";
import { confirmRevocation } from "../revocation.ts";
import { createWithSecret } from "../secret-file.ts";
import { sessions } from "../session.ts";
import { command, group, type LimitOption, withLimit, withYes } from "./group.ts";

/** Returns `onceward operator keys …`: the operators' API keys. */
export function operatorKeyCommands(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return group(
    "keys",
    [
      withNewOperatorKey(
        command(
          "create",
          "Creates an operator's API key and prints its secret, only once. To rotate: create a key, switch to it, revoke the old one.",
          "operator keys create --label 'on call' --expires 90d --out operator.key",
        ),
      ).action(
        asOperator(
          async ({ client, call, output }, options: Pick<NewKeyOptions, "label" | "expires" | "out">) => {
            const { label = "", expires, out } = options;
            const apiKey = { label, ...(expires && { expiresAt: expires }) };
            const create = () => client.createOperatorApiKey({ apiKey }, call);
            await createWithSecret(out, output, create, (reply) => {
              output.remark(`Key ${reply.apiKey?.id}; its secret is shown only now:\n`);
              output.message(CreateOperatorApiKeyResponseSchema, reply, () => `${reply.secret}\n`);
            });
          },
        ),
      ),
      withLimit(
        command(
          "list",
          "Lists operators' API keys, revoked and expired ones too, newest first; without the key of the server's configuration.",
          "operator keys list",
        ),
      ).action(
        asOperator(async ({ client, call, output }, { limit }: LimitOption) => {
          const listed = await collectPages(limit, "apiKeys", (page) =>
            client.listOperatorApiKeys(page, call),
          );
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
        asOperator(async (session, id: string, options: YesOption) => {
          const { client, call, output } = session;
          await confirmRevocation(session, options, id, (page) => client.listOperatorApiKeys(page, call));
          const reply = await client.revokeOperatorApiKey({ id }, call);
          output.message(
            RevokeOperatorApiKeyResponseSchema,
            reply,
            () => `Revoked key ${id}; every replica follows within 10 s.\n`,
          );
        }),
      ),
    ],
    "the operators' API keys",
  );
}
