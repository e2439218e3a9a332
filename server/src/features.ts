import type { Feature } from "./core/feature.ts";
import { administration } from "./features/administration/feature.ts";
import { citus } from "./features/citus/feature.ts";
import { webConsole } from "./features/console/feature.ts";
import { createDoctor } from "./features/doctor/feature.ts";
import { encryption } from "./features/encryption/feature.ts";
import { insight } from "./features/insight/feature.ts";
import { jobs } from "./features/jobs/feature.ts";
import { keyHistory } from "./features/key-history/feature.ts";
import { moving } from "./features/moving/feature.ts";
import { usage } from "./features/usage/feature.ts";

/** In the order in which they are composed: a feature knows what those before it have added. */
const OTHERS: readonly Feature[] = [
  usage,
  insight,
  keyHistory,
  jobs,
  administration,
  encryption,
  moving,
  citus,
  webConsole,
];

/** The features of the service. One without its line in this file is not part of it. */
export const FEATURES: readonly Feature[] = [
  ...OTHERS,
  createDoctor(OTHERS.flatMap(({ checks }) => checks ?? [])),
];
