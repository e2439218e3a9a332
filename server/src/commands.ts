import { migrate } from "./commands/migrate.ts";
import { serve } from "./commands/serve.ts";
import type { Command } from "./core/feature.ts";
import { FEATURES } from "./features.ts";

/** The commands of `onceward-server`, in the order of its usage. */
export const COMMANDS: readonly Command[] = [
  serve,
  migrate,
  ...FEATURES.flatMap(({ commands }) => commands ?? []),
];
