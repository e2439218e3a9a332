import type { Command } from "commander";
import type { Host } from "./host.ts";

/** A command, or a group of commands, of the program. */
export interface Entry {
  readonly name: string;
  readonly summary: string;
  /** Loads the function that makes it. A module is loaded if its command is typed: a shell runs this program for each completion. */
  readonly load: () => Promise<(host: Host) => Command>;
}

/** The commands, in the order of the help. */
export const COMMANDS: readonly Entry[] = [
  {
    name: "login",
    summary: "ask for an API key, check it, and store it in a profile",
    load: async () => (await import("./commands/login.ts")).loginCommand,
  },
  {
    name: "profile",
    summary: "stored addresses and API keys",
    load: async () => (await import("./commands/profile.ts")).profileCommands,
  },
  {
    name: "doctor",
    summary: "check this machine's way to the service",
    load: async () => (await import("./commands/connection-doctor.ts")).doctorCommand,
  },
  {
    name: "whoami",
    summary: "the tenant, role and namespaces of your credential",
    load: async () => (await import("./commands/whoami.ts")).whoAmICommand,
  },
  {
    name: "tenant",
    summary: "your tenant: its policy, quotas and bounds",
    load: async () => (await import("./commands/tenant.ts")).tenantCommands,
  },
  {
    name: "namespaces",
    summary: "namespaces that set a policy of their own",
    load: async () => (await import("./commands/namespaces.ts")).namespaceCommands,
  },
  {
    name: "retention",
    summary: "how long keys and results are remembered",
    load: async () => (await import("./commands/retention.ts")).retentionCommands,
  },
  {
    name: "advice",
    summary: "which key retention is long enough",
    load: async () => (await import("./commands/advice.ts")).adviceCommand,
  },
  {
    name: "records",
    summary: "the records of keys, and their resolution",
    load: async () => (await import("./commands/records.ts")).recordCommands,
  },
  {
    name: "lookup",
    summary: "one key's record, as its caller sees it",
    load: async () => (await import("./commands/lookup.ts")).lookupCommand,
  },
  {
    name: "jobs",
    summary: "background changes of records",
    load: async () => (await import("./commands/jobs.ts")).jobCommands,
  },
  {
    name: "keys",
    summary: "the tenant's API keys; the quality of idempotency keys",
    load: async () => (await import("./commands/keys.ts")).keyCommands,
  },
  {
    name: "audit",
    summary: "changes in the tenant, and refused calls",
    load: async () => (await import("./commands/audit.ts")).auditCommands,
  },
  {
    name: "usage",
    summary: "claims by hour and namespace",
    load: async () => (await import("./commands/usage.ts")).usageCommands,
  },
  {
    name: "watch",
    summary: "this hour's claims, ambiguous records and jobs, until Ctrl-C",
    load: async () => (await import("./commands/watch.ts")).watchCommand,
  },
  {
    name: "bench",
    summary: "how many claims a second the installation answers to this machine",
    load: async () => (await import("./commands/bench.ts")).benchCommand,
  },
  {
    name: "http-proxy",
    summary: "guard an unmodified HTTP service",
    load: async () => (await import("./commands/http-proxy.ts")).httpProxyCommand,
  },
  {
    name: "probe",
    summary: "what an HTTP API, or a tool, does with idempotency keys",
    load: async () => (await import("./commands/probe.ts")).probeCommand,
  },
  {
    name: "operator",
    summary: "commands of the platform team, with an operator's API key",
    load: async () => (await import("./commands/operator.ts")).operatorCommands,
  },
  {
    name: "completion",
    summary: "a script that makes a shell complete commands, options and names",
    load: async () => (await import("./commands/completion.ts")).completionCommand,
  },
];
