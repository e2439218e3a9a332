import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";

type Linked = Pick<Record, "key" | "owner">;

/** Returns the address at the provider for a record, of a policy's template; undefined without one. The server allows only https. */
export function writeProviderLink(template: string | undefined, { key, owner }: Linked): string | undefined {
  if (template === undefined || !template.startsWith("https://")) return undefined;
  const values: Readonly<globalThis.Record<string, string>> = { "{key}": key, "{owner}": owner };
  return template.replace(/\{(?:key|owner)\}/g, (name) => encodeURIComponent(values[name] ?? ""));
}

/** Leads to the provider's page about a record, where a person sees whether the effect happened. */
export function ProviderLink({ template, record }: { readonly template: string; readonly record: Linked }) {
  const href = writeProviderLink(template, record);
  if (href === undefined) return undefined;
  return (
    <a href={href} target="_blank" rel="noreferrer" aria-label={`Look up ${record.key}`}>
      Look up ↗
    </a>
  );
}
