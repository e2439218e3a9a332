import { KeyDefect, type KeyQuality } from "@onceward/client/proto";

/** Each defect in a few words. */
const DEFECT_TITLES: Readonly<Record<KeyDefect, string>> = {
  [KeyDefect.UNSPECIFIED]: "A defect that this version of the console does not know",
  [KeyDefect.NEW_KEY_PER_RETRY]: "A new key for each retry",
  [KeyDefect.TIME_IN_KEY]: "The time in the key",
  [KeyDefect.ATTEMPT_IN_KEY]: "The number of the attempt in the key",
  [KeyDefect.UUID_PER_CLAIM]: "A new UUID for each claim",
  [KeyDefect.NO_FINGERPRINTS]: "Claims without a fingerprint",
  [KeyDefect.REPEATS_AFTER_EXPIRY]: "Duplicates after the end of the record",
  [KeyDefect.RANDOM_ORDER]: "Random keys, which cost more",
};

/** What was counted, as KeyEvidence names it, in words. */
const MEASURES: Readonly<Record<string, string>> = {
  other_key_within_15_minutes: "Equal fingerprints that came again within 15 minutes under another key",
  other_key_after_hours: "Equal fingerprints whose next claim came after 1 to 24 hours",
  other_counter_within_15_minutes:
    "Equal fingerprints that came again within 15 minutes under a key with another digit at its end",
  same_key_within_15_minutes: "Keys that were repeated within 15 minutes",
  same_key: "Keys that were repeated",
  epoch_in_key: "Keys that contain the time of the claim",
  attempt_in_key: 'Keys that end with "retry", "attempt" or "try", and a number',
  random_uuid: "Keys that contain a random UUID",
  uuid_made_at_claim: "Keys that contain a UUID made within a second of the claim",
  without_fingerprint: "Claims without a fingerprint",
  repeats_after_expiry: "Duplicates that came after the end of their record",
};

/** What key quality knows of a namespace that is not a suspicion of its keys. */
const NOT_SUSPECTED: readonly KeyDefect[] = [KeyDefect.REPEATS_AFTER_EXPIRY, KeyDefect.RANDOM_ORDER];

/**
 * Returns what is suspected of the keys of a namespace, and apart from it that duplicates come late, which says something about its
 * retention, and that its keys are random, which are right and cost more.
 */
export function suspicionsOf({ suspicions }: Pick<KeyQuality, "suspicions">) {
  const one = (wanted: KeyDefect) => suspicions.find(({ defect }) => defect === wanted);
  return {
    ofKeys: suspicions.filter(({ defect }) => !NOT_SUSPECTED.includes(defect)),
    late: one(KeyDefect.REPEATS_AFTER_EXPIRY),
    random: one(KeyDefect.RANDOM_ORDER),
    /** What the keys are asked about: without the late duplicates. */
    shown: suspicions.filter(({ defect }) => defect !== KeyDefect.REPEATS_AFTER_EXPIRY),
  };
}

/** Returns a defect's title; one of a newer server has the first. */
export function defectTitle(defect: KeyDefect): string {
  return DEFECT_TITLES[defect] ?? DEFECT_TITLES[KeyDefect.UNSPECIFIED];
}

/** Returns what a measure counts; one of a newer server keeps its name. */
export function measureWords(measure: string): string {
  return MEASURES[measure] ?? measure.replaceAll("_", " ");
}
