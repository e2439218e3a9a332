import { findPreviousVersion, layOutVersion } from "../../../helpers/processes/previous-version.ts";
import { anyReplica, type Fault, last } from "./fault.ts";

/** Old and new versions side by side, as during a rollout. */
export const VERSION_FAULTS: readonly Fault[] = [
  {
    name: "replica-old-version",
    target: "replica",
    async inject(scene) {
      const commit = await findPreviousVersion();
      if (commit === undefined) return;
      const replica = anyReplica(scene);
      const { main, remove } = await layOutVersion(commit);
      try {
        await replica.restart({ main });
        await last(scene, 5000, 10_000);
      } finally {
        await replica.restart();
        await remove();
      }
    },
    whyNot: async () =>
      (await findPreviousVersion()) === undefined
        ? "the clone is too shallow to hold the old version"
        : undefined,
  },
];
