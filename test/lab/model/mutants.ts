import type { INVARIANTS } from "./quint.ts";

/** A mutant of the protocol: how its runs continue, and what the first run that shows it violates. */
export interface Mutant {
  readonly step: "step" | "stepResolving" | "stepLosing" | "stepSettingClocks" | "stepGoverning";
  readonly invariants: readonly (keyof typeof INVARIANTS)[];
}

/** The mutants by the actions of `mutants.qnt` that begin their runs. */
export const MUTANTS: Readonly<Record<string, Mutant>> = {
  withoutLeasePredicate: { step: "stepResolving", invariants: ["oneLiveClaim"] },
  withoutReclaimWindow: { step: "step", invariants: ["heldLeasesStay"] },
  withoutReclaimCourse: { step: "step", invariants: ["heldLeasesStay"] },
  withoutTokenCheck: { step: "step", invariants: ["onlyTheHolderSettles"] },
  withoutStateCheck: { step: "step", invariants: ["onlyTheHolderSettles"] },
  withoutFingerprintCheck: { step: "step", invariants: ["fingerprintsAgree"] },
  withoutRowToken: { step: "stepResolving", invariants: ["tokensRise"] },
  withoutTokenFloor: { step: "stepSettingClocks", invariants: ["tokensRise"] },
  withoutSweepMargin: { step: "stepResolving", invariants: ["tokensRise"] },
  withoutSweepRetention: { step: "step", invariants: ["retentionHolds"] },
  withoutForgetKeepsRow: { step: "stepResolving", invariants: ["tokensRise"] },
  withoutTrustedCourse: { step: "step", invariants: ["retentionHolds"] },
  withoutInstallationRenewed: {
    step: "step",
    invariants: ["resultsAreReplayed", "copiesBelongToTheirInstallation"],
  },
  withoutLateByDatabase: { step: "step", invariants: ["oneLife"] },
  withoutTimeRequired: { step: "step", invariants: ["oneLife"] },
  withoutRowOutlivesKey: { step: "step", invariants: ["oneLife"] },
  withoutLengthenedStamp: { step: "stepGoverning", invariants: ["oneLife"] },
  withoutStampAhead: { step: "stepGoverning", invariants: ["oneLife"] },
  withoutRestampWaits: { step: "stepGoverning", invariants: ["oneLife"] },
  withoutRestoreStamp: { step: "step", invariants: ["oneLife"] },
  withoutLossCompared: { step: "stepLosing", invariants: ["oneLife"] },
  withoutLossMoves: { step: "stepLosing", invariants: ["oneLife"] },
  withoutRetentionKept: { step: "step", invariants: ["oneLife"] },
  withoutCompletedByClaim: { step: "step", invariants: ["firstAnswerRepeats"] },
  withoutGivenBackHeld: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"] },
  withoutGivenBackToken: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"] },
  withoutGivenBackCounts: { step: "stepResolving", invariants: ["tokensRise"] },
  withoutReleaseLeavesOpen: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"] },
  withoutUnknownRetained: { step: "step", invariants: ["retentionHolds"] },
  withoutPendingFree: { step: "step", invariants: ["pendingIsFree"] },
  withoutUnknownKept: { step: "step", invariants: ["retentionHolds", "searchChangesNothing"] },
  withoutBeginKept: { step: "step", invariants: ["heldLeasesStay"] },
};
