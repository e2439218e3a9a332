import type { Check as AnyCheck, Patient } from "../../core/feature.ts";
import type { Observation } from "./findings.ts";

/** Examines one subject, and finds only what the catalogue has. */
export interface Check extends AnyCheck {
  examine(patient: Patient): Promise<readonly Observation[]>;
}
