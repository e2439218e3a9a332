import { administration } from "../admin/feature.ts";
import { jobs } from "../admin/jobs/feature.ts";
import { usage } from "../admin/usage/feature.ts";
import { citus } from "../citus/feature.ts";
import { webConsole } from "../console/feature.ts";
import { createDoctor } from "../doctor/feature.ts";
import { encryption } from "../encryption/feature.ts";
import { insight } from "../insight/feature.ts";
import { keyHistory } from "../key-history/feature.ts";
import { moving } from "../moving/feature.ts";
import type { Feature } from "./feature.ts";

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
