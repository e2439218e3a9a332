import type { TenantAdmin } from "@onceward/client/admin";
import { GetRetentionAdviceResponseSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { ADVICE_COLUMNS, describeAdvice } from "../advice-text.ts";
import { parsePerMillion } from "../arguments.ts";
import { BENCH_PREFIX } from "../bench/site.ts";
import { createTenantAdmin } from "../clients.ts";
import type { Host } from "../host.ts";
import { requireNamespace } from "../known-names.ts";
import { collectPages } from "../pages.ts";
import { type Session, sessions } from "../session.ts";
import { parsePast } from "../times.ts";
import { command, withTable } from "./group.ts";

interface AdviceOptions {
  readonly maxLate?: number;
}

/** Hours of usage that are searched for namespaces. */
const MAX_HOURS = 10_000;
/** The server advises on as many namespaces at once. */
const ADVISED_AT_ONCE = 20;

/** Returns `onceward advice`: which retention is long enough for how late duplicates come. */
export function adviceCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withTable(
    command(
      "advice [namespace]",
      "Shows how many duplicates would come too late with other key retentions, and which one is long enough. Without a namespace: of all that were used in the last week.",
      "advice charges",
      "advice charges --max-late 10",
    ),
  )
    .option(
      "--max-late <count>",
      "late duplicates that you accept in a million claims; default: 1",
      parsePerMillion,
    )
    .action(
      asAdmin(async (session, name: string | undefined, { maxLate = 0 }: AdviceOptions) => {
        const { client, call, output } = session;
        if (name !== undefined) {
          const advice = await client.getRetentionAdvice(
            { namespace: name, maxLatePerMillion: maxLate },
            call,
          );
          if (advice.observedSince === undefined) await requireNamespace(client, call, name);
          return output.message(GetRetentionAdviceResponseSchema, advice, () => describeAdvice(advice));
        }
        const used = await usedNamespaces(session);
        const items = [];
        for (let from = 0; from < used.items.length; from += ADVISED_AT_ONCE) {
          const namespaces = used.items.slice(from, from + ADVISED_AT_ONCE);
          const { advice } = await client.listRetentionAdvice(
            { namespaces, maxLatePerMillion: maxLate },
            call,
          );
          items.push(...advice);
        }
        output.list(GetRetentionAdviceResponseSchema, { items, hasMore: used.hasMore }, ADVICE_COLUMNS);
      }),
    );
}

async function usedNamespaces({ client, call }: Session<TenantAdmin>) {
  const { items, hasMore } = await collectPages(MAX_HOURS, "hours", (page) =>
    client.getUsage({ ...page, after: parsePast("7d") }, call),
  );
  const names = new Set(items.map(({ namespace }) => namespace));
  // A bench deletes its namespace; its usage stays.
  return { items: [...names].filter((name) => !name.startsWith(BENCH_PREFIX)).sort(), hasMore };
}
