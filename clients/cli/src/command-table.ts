import type { Command } from "commander";
import type { Host } from "./host.ts";

/** What each command or group of commands is for, in the order of the help. */
const SUMMARIES = {
  login: "ask for an API key, check it, and store it in a profile",
  profile: "stored addresses and API keys",
  doctor: "check this machine's way to the service",
  whoami: "the tenant, role and namespaces of your credential",
  tenant: "your tenant: its policy, quotas and bounds",
  namespaces: "namespaces that set a policy of their own",
  retention: "how long keys and results are remembered",
  advice: "which key retention is long enough",
  records: "the records of keys, and their resolution",
  lookup: "one key's record, as its caller sees it",
  jobs: "background changes of records",
  keys: "the tenant's API keys; the quality of idempotency keys",
  audit: "changes in the tenant, and refused calls",
  usage: "claims by hour and namespace",
  watch: "this hour's claims, ambiguous records and jobs, until Ctrl-C",
  bench: "how many claims a second the installation answers to this machine",
  "http-proxy": "guard an unmodified HTTP service",
  probe: "what an HTTP API does with idempotency keys",
  operator: "commands of the platform team, with an operator's API key",
  completion: "a script that makes a shell complete commands, options and names",
} as const;

type Name = keyof typeof SUMMARIES;

/** Loads the functions that make the commands. A module is loaded if its command is typed: a shell runs this program for each completion. */
const LOADERS: Readonly<Record<Name, () => Promise<(host: Host) => Command>>> = {
  login: async () => (await import("./commands/login.ts")).loginCommand,
  profile: async () => (await import("./commands/profile.ts")).profileCommands,
  doctor: async () => (await import("./commands/connection-doctor.ts")).doctorCommand,
  whoami: async () => (await import("./commands/whoami.ts")).whoAmICommand,
  tenant: async () => (await import("./commands/tenant.ts")).tenantCommands,
  namespaces: async () => (await import("./commands/namespaces.ts")).namespaceCommands,
  retention: async () => (await import("./commands/retention.ts")).retentionCommands,
  advice: async () => (await import("./commands/advice.ts")).adviceCommand,
  records: async () => (await import("./commands/records.ts")).recordCommands,
  lookup: async () => (await import("./commands/lookup.ts")).lookupCommand,
  jobs: async () => (await import("./commands/jobs.ts")).jobCommands,
  keys: async () => (await import("./commands/keys.ts")).keyCommands,
  audit: async () => (await import("./commands/audit.ts")).auditCommands,
  usage: async () => (await import("./commands/usage.ts")).usageCommands,
  watch: async () => (await import("./commands/watch.ts")).watchCommand,
  bench: async () => (await import("./commands/bench.ts")).benchCommand,
  "http-proxy": async () => (await import("./commands/http-proxy.ts")).httpProxyCommand,
  probe: async () => (await import("./commands/probe.ts")).probeCommand,
  operator: async () => (await import("./commands/operator.ts")).operatorCommands,
  completion: async () => (await import("./commands/completion.ts")).completionCommand,
};

/** A command, or a group of commands, of the program. */
export interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<(host: Host) => Command>;
}

/** The commands, in the order of the help. */
export const COMMANDS: readonly Entry[] = (Object.keys(SUMMARIES) as Name[]).map((name) => ({
  name,
  summary: SUMMARIES[name],
  load: LOADERS[name],
}));
