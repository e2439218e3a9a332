import { RecordSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { createOnceward } from "../clients.ts";
import type { Credentials } from "../credentials.ts";
import { EXIT, Outcome } from "../failure.ts";
import type { Host } from "../host.ts";
import { describeRecord } from "../record-text.ts";
import { sessions } from "../session.ts";
import { command } from "./group.ts";
import type { ResultOption } from "./records.ts";

/** Returns `onceward lookup`: a key's record, as a caller sees it. */
export function lookupCommand(host: Host): Command {
  const asCaller = sessions(host, connectCaller, "caller");
  return command(
    "lookup <namespace> <key>",
    "Shows a key's record, with a caller's API key, without changing it.",
    "lookup charges order-1 --profile payments",
    "lookup charges order-1 --result",
  )
    .option("--result", "show the contents of the result and the checkpoint")
    .action(
      asCaller(async ({ client, call, output }, namespace: string, key: string, { result }: ResultOption) => {
        const { record } = await client.api.lookup({ namespace, key }, call);
        if (record === undefined)
          throw new Outcome(EXIT.notFound, `The key is unknown, or forgotten.${hintForKey(namespace, key)}`);
        output.message(RecordSchema, record, () => describeRecord(record, { showsResult: result === true }));
      }),
    );
}

/** Returns, for a key that can be a bare `Idempotency-Key`, how HTTP guards store it; else "". */
function hintForKey(namespace: string, key: string): string {
  if (key.includes(":")) return "";
  return ` HTTP guards store METHOD:route:caller:KEY; an admin lists such keys with onceward records list --namespace ${namespace} --prefix POST:`;
}

async function connectCaller(credentials: Credentials) {
  const onceward = await createOnceward(credentials);
  return { api: onceward.api, close: () => void onceward.close() };
}
