import type { TenantAdmin } from "@onceward/client/admin";
import { DeleteNamespaceResponseSchema, type Namespace, NamespaceSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { DELETE_POLICY, FORGET_RECORDS } from "#words/changes";
import { formatNoun } from "#words/words";
import { readFieldOptions } from "../arguments.ts";
import { createTenantAdmin } from "../clients.ts";
import { confirm, type YesOption } from "../confirm.ts";
import type { Host } from "../host.ts";
import { collectPages } from "../pages.ts";
import { changePolicy, type PolicyChangeOptions, withPolicyChange } from "../policy-change.ts";
import { POLICY_FIELDS, policyRows } from "../policy-fields.ts";
import { namespacePolicy } from "../policy-targets.ts";
import { type Session, sessions } from "../session.ts";
import { renderFacts, renderTable } from "../table.ts";
import { formatMoment, Moment, Span } from "../times.ts";
import { countRecords } from "./count.ts";
import { command, group, type LimitOption, withLimit, withYes } from "./group.ts";

/** Returns `onceward namespaces …`: namespaces with a policy of their own. */
export function namespaceCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("namespaces", [
    withPrefix(
      command("list", "Lists these namespaces.", "namespaces list", "namespaces list --prefix pay"),
    ).action(
      asAdmin(async ({ client, call, output }, { limit, prefix = "" }: PrefixOption) => {
        const listed = await collectPages(limit, "namespaces", (page) =>
          client.listNamespaces({ ...page, namePrefix: prefix }, call),
        );
        output.list(NamespaceSchema, listed, [
          ["NAMESPACE", ({ name }) => name],
          ["KEY RETENTION", ({ effectivePolicy }) => new Span(effectivePolicy?.keyRetention)],
          ["RESULT RETENTION", ({ effectivePolicy }) => new Span(effectivePolicy?.resultRetention), "wide"],
          [
            "ON LEASE EXPIRY",
            ({ effectivePolicy }) => new Map(policyRows(effectivePolicy)).get("on lease expiry") ?? "",
          ],
          ["CREATED", ({ createdAt }) => new Moment(createdAt), "wide"],
        ]);
      }),
    ),
    undeclaredCommand(host),
    command(
      "show <namespace>",
      "Shows a namespace, with its effective policy.",
      "namespaces show charges",
    ).action(
      asAdmin(async ({ client, call, output }, name: string, _options: object) => {
        const { namespace } = await client.getNamespace({ name }, call);
        if (namespace !== undefined) output.message(NamespaceSchema, namespace, () => describe(namespace));
      }),
    ),
    withPolicyChange(
      command(
        "set <namespace>",
        "Sets a namespace's policy, and declares the namespace if necessary. Shows the effect, and asks.",
        "namespaces set payouts --on-lease-expiry hold --max-lease 1h",
        "namespaces set charges --require-fingerprint true --yes",
        "namespaces set charges --late-keys refuse --dry-run",
      ),
    ).action(
      asAdmin(async (session, name: string, options: PolicyChangeOptions) => {
        const fields = readFieldOptions(POLICY_FIELDS, { ...options });
        await changePolicy(session, namespacePolicy(session, name), fields, options);
      }),
    ),
    withYes(
      command(
        "delete <namespace>",
        "Removes a namespace's policy: from then on the tenant's policy applies.",
        "namespaces delete charges",
        "namespaces delete load-test --force --yes",
      ).option("--force", "also forget the namespace's records, as if they had never been claimed"),
    ).action(
      asAdmin(async (session, name: string, options: YesOption & { readonly force?: true }) => {
        const { client, call, output } = session;
        const force = options.force === true;
        await confirm(session, options, {
          effect: [DELETE_POLICY, ...(force ? [await describeForgotten(session, name)] : [])].join("\n"),
          question: force
            ? `Delete the namespace ${name}, and forget its records?`
            : `Delete the namespace ${name}?`,
          typed: name,
        });
        const reply = await client.deleteNamespace({ name, force }, call);
        const { job } = reply;
        output.message(DeleteNamespaceResponseSchema, reply, () =>
          job === undefined
            ? `Removed the policy of ${name}.\n`
            : `Removed the policy of ${name}; its records are being removed in the background: onceward jobs show ${job.id}\n`,
        );
      }),
    ),
  ]);
}

async function describeForgotten(session: Session<TenantAdmin>, namespace: string): Promise<string> {
  const { inProgress, lapsed, completed, released, ambiguous } = await countRecords(session, namespace);
  const count = inProgress + lapsed + completed + released + ambiguous;
  return `${FORGET_RECORDS}\nIt has ${formatNoun(count, "record", "records")}, of which ${formatNoun(ambiguous, "is", "are")} ambiguous.`;
}

interface PrefixOption extends LimitOption {
  readonly prefix?: string;
}

function withPrefix(made: Command): Command {
  return withLimit(made).option("--prefix <text>", "only namespaces that begin with this text");
}

function undeclaredCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withPrefix(
    command(
      "undeclared",
      "Lists the namespaces that have records and no policy of their own. A misspelt namespace shows here.",
      "namespaces undeclared",
    ),
  ).action(
    asAdmin(async ({ client, call, output }, { limit, prefix = "" }: PrefixOption) => {
      const listed = await collectPages(limit, "names", (page) =>
        client.listUndeclaredNamespaces({ ...page, namePrefix: prefix }, call),
      );
      output.values(listed, [["NAMESPACE", (name) => name]], (name) => name);
    }),
  );
}

function describe({ name, createdAt, policy, effectivePolicy }: Namespace): string {
  const own = new Map(policyRows(policy));
  return [
    renderFacts([
      ["namespace", name],
      ["created", formatMoment(createdAt)],
    ]),
    renderTable(
      ["policy", "effective", "set"],
      policyRows(effectivePolicy).map(([label, value]) => [label, value, own.get(label) ?? "-"]),
    ),
  ].join("\n");
}
