import type { Command } from "../replica/feature.ts";
import { FEATURES } from "../replica/features.ts";
import { migrate } from "./migrate.ts";
import { serve } from "./serve.ts";

/** The commands of `onceward-server`, in the order of its usage. */
export const COMMANDS: readonly Command[] = [
  serve,
  migrate,
  ...FEATURES.flatMap(({ commands }) => commands ?? []),
];
