import type { INVARIANTS } from "./quint.ts";

/** A mutant of the protocol: how its runs continue, and what the first run that shows it violates. */
export interface Mutant {
  readonly step: "step" | "stepResolving" | "stepLosing" | "stepSettingClocks" | "stepGoverning";
  readonly invariants: readonly (keyof typeof INVARIANTS)[];
  /** One whose first runs show it. Default: 1. */
  readonly seed?: number;
}

/** The mutants by the actions of `mutants.qnt` that begin their runs. */
export const MUTANTS: Readonly<Record<string, Mutant>> = {
  withoutLeasePredicate: { step: "stepResolving", invariants: ["oneLiveClaim"], seed: 0x1701 },
  withoutReclaimWindow: { step: "step", invariants: ["heldLeasesStay"] },
  withoutReclaimCourse: { step: "step", invariants: ["heldLeasesStay"] },
  withoutTokenCheck: { step: "step", invariants: ["onlyTheHolderSettles"] },
  withoutStateCheck: { step: "step", invariants: ["onlyTheHolderSettles"] },
  withoutFingerprintCheck: { step: "step", invariants: ["fingerprintsAgree"] },
  withoutRowToken: { step: "stepResolving", invariants: ["tokensRise"] },
  withoutTokenFloor: { step: "stepSettingClocks", invariants: ["tokensRise"], seed: 0x237bd },
  withoutSweepMargin: { step: "stepResolving", invariants: ["tokensRise"] },
  withoutSweepRetention: { step: "step", invariants: ["retentionHolds"], seed: 0x38d2 },
  withoutForgetKeepsRow: { step: "stepResolving", invariants: ["tokensRise"] },
  withoutTrustedCourse: { step: "step", invariants: ["retentionHolds"] },
  withoutInstallationRenewed: {
    step: "step",
    invariants: ["resultsAreReplayed", "copiesBelongToTheirInstallation"],
    seed: 0x6ee2,
  },
  withoutLateByDatabase: { step: "step", invariants: ["oneLife"] },
  withoutTimeRequired: { step: "step", invariants: ["oneLife"] },
  withoutRowOutlivesKey: { step: "step", invariants: ["oneLife"], seed: 0x43db },
  withoutLengthenedStamp: { step: "stepGoverning", invariants: ["oneLife"] },
  withoutStampAhead: { step: "stepGoverning", invariants: ["oneLife"], seed: 0x3b8c },
  withoutRestampWaits: { step: "stepGoverning", invariants: ["oneLife"] },
  withoutRestoreStamp: { step: "step", invariants: ["oneLife"] },
  withoutLossCompared: { step: "stepLosing", invariants: ["oneLife"] },
  withoutLossMoves: { step: "stepLosing", invariants: ["oneLife"] },
  withoutRetentionKept: { step: "step", invariants: ["oneLife"] },
  withoutCompletedByClaim: { step: "step", invariants: ["firstAnswerRepeats"], seed: 0x6f46 },
  withoutGivenBackHeld: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"] },
  withoutGivenBackToken: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"] },
  withoutGivenBackCounts: { step: "stepResolving", invariants: ["tokensRise"], seed: 0x7cec },
  withoutReleaseLeavesOpen: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"] },
  withoutUnknownRetained: { step: "step", invariants: ["retentionHolds"], seed: 0xf0bf },
  withoutPendingFree: { step: "step", invariants: ["pendingIsFree"] },
  withoutUnknownKept: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"], seed: 0xaac9 },
  withoutBeginKept: { step: "step", invariants: ["heldLeasesStay"], seed: 0x1ae1d },
};
