import { describe, expect, test } from "vitest";
import { judgeKeys, type KeyObservations } from "./key-quality.ts";

/** A month of honest claims: one in 50 is repeated, and one fingerprint in 100 comes again a few hours later. */
const HONEST: KeyObservations = {
  claims: 100_000,
  repeats: 2000,
  promptRepeats: 1500,
  late: { sum: 0, squares: 0, largest: 0, seen: 0, days: 0 },
  shapes: {
    claims: 5000,
    withoutFingerprint: 0,
    times: 0,
    attempts: 0,
    randomUuids: 0,
    promptUuids: 0,
  },
  fingerprints: {
    claims: 8000,
    prompt: 8,
    counted: 0,
    later: 80,
    promptHours: 2000,
    laterHours: 184_000,
  },
};
const WITHOUT_REPEATS = { repeats: 0, promptRepeats: 0 };

function seen(
  changes: {
    readonly [Name in keyof KeyObservations]?: Partial<KeyObservations[Name]> | number;
  },
): KeyObservations {
  const parts = Object.entries(changes).map(([name, change]) => {
    const old = HONEST[name as keyof KeyObservations];
    return [name, typeof change === "number" ? change : { ...(old as object), ...change }];
  });
  return { ...HONEST, ...Object.fromEntries(parts) };
}

function suspectedKinds(observations: KeyObservations): readonly string[] {
  return judgeKeys(observations).flatMap(({ kind, verdict }) => (verdict === "suspected" ? [kind] : []));
}

function missing(observations: KeyObservations) {
  return judgeKeys(observations).flatMap((finding) =>
    finding.verdict === "insufficient" ? [[finding.kind, finding.missing]] : [],
  );
}

test("nothing is suspected or missing of honest claims", () => {
  expect(judgeKeys(HONEST)).toEqual([]);
});

describe("a new key for each retry", () => {
  const minted = { ...WITHOUT_REPEATS, fingerprints: { prompt: 160 } };

  test("is suspected by equal fingerprints within minutes", () => {
    expect(judgeKeys(seen(minted))).toMatchObject([
      {
        kind: "newKeyPerRetry",
        evidence: [
          { measure: "other_key_within_15_minutes", count: 160, of: 8000 },
          { measure: "other_key_after_hours", count: 80, of: 8000 },
          { measure: "same_key_within_15_minutes", count: 0, of: 100_000 },
        ],
      },
    ]);
    const [finding] = judgeKeys(seen(minted));
    const { interval } = (finding?.verdict === "suspected" && finding.evidence[0]) || {};
    // Clopper and Pearson's interval of 160 in 8000.
    expect(interval?.low).toBeCloseTo(0.01705, 4);
    expect(interval?.high).toBeCloseTo(0.02331, 4);
  });

  test.each([
    ["keys are repeated as often", { repeats: 2000, promptRepeats: 1500 }],
    ["the same happens hours later", { fingerprints: { prompt: 160, later: 4000 } }],
    ["it may be chance", { fingerprints: { prompt: 5, later: 0 } }],
  ])("is not suspected if %s", (_, changes) => {
    expect(suspectedKinds(seen({ ...minted, ...changes }))).toEqual([]);
  });

  test("takes 1,000 claims and more than an hour", () => {
    const fingerprints = { claims: 400, prompt: 100, later: 0, laterHours: 0 };
    expect(missing(seen({ ...minted, fingerprints }))).toEqual([
      ["newKeyPerRetry", { missingClaims: 600, missingDays: 1 }],
      ["attemptInKey", { missingClaims: 600, missingDays: 0 }],
    ]);
  });
});

describe("an attempt's number in the key", () => {
  const counted = { ...WITHOUT_REPEATS, fingerprints: { counted: 100 }, shapes: { attempts: 60 } };

  test("is suspected by equal fingerprints with other counters", () => {
    expect(judgeKeys(seen(counted))).toMatchObject([
      { kind: "attemptInKey", evidence: [{ count: 100, of: 8000 }, { count: 60, of: 5000 }, { count: 0 }] },
    ]);
  });

  test("is not suspected if keys are repeated, such as those of items of an order", () => {
    expect(suspectedKinds(seen({ ...counted, repeats: 2000, promptRepeats: 1500 }))).toEqual([]);
  });

  test("is suspected by its word alone where there are no fingerprints", () => {
    const none = { claims: 0, prompt: 0, counted: 0, later: 0, promptHours: 0, laterHours: 0 };
    const shapes = { attempts: 60, withoutFingerprint: 5000 };
    expect(suspectedKinds(seen({ ...WITHOUT_REPEATS, fingerprints: none, shapes }))).toEqual([
      ...["attemptInKey", "noFingerprints"],
    ]);
    expect(suspectedKinds(seen({ fingerprints: none, shapes }))).toEqual(["noFingerprints"]);
  });
});

describe.each([
  ["timeInKey", { times: 2700 }, { times: 2400 }],
  ["uuidPerClaim", { randomUuids: 4900 }, { randomUuids: 4600 }],
  ["uuidPerClaim", { promptUuids: 4900 }, { promptUuids: 4600 }],
])("%s", (kind, shapes, fewer) => {
  test("is suspected of keys that are never repeated", () => {
    expect(suspectedKinds(seen({ ...WITHOUT_REPEATS, shapes }))).toEqual([kind]);
  });

  test.each([
    ["keys are repeated", { shapes }],
    ["keys are repeated late", { ...WITHOUT_REPEATS, shapes, late: { sum: 80, seen: 80, squares: 80 } }],
    ["other keys are not fewer", { ...WITHOUT_REPEATS, shapes: fewer }],
  ])("is not suspected if %s", (_, changes) => {
    expect(suspectedKinds(seen(changes))).toEqual([]);
  });

  test("takes as many claims as the bound of their repeats needs", () => {
    expect(missing(seen({ ...WITHOUT_REPEATS, shapes, claims: 9000 }))).toEqual([
      // 3 / 0.0003, less 9,000.
      [kind, { missingClaims: 985, missingDays: 0 }],
    ]);
  });
});

test("random UUIDs are suspected of costing much only if there are many claims", () => {
  const shapes = { randomUuids: 4900 };
  expect(suspectedKinds(seen({ claims: 1e6, shapes }))).toEqual(["randomOrder"]);
  expect(suspectedKinds(seen({ claims: 1e6 - 1, shapes }))).toEqual([]);
  expect(suspectedKinds(seen({ claims: 1e6, shapes: { randomUuids: 4600 } }))).toEqual([]);
});

test("missing fingerprints are suspected only if no claim has one", () => {
  expect(suspectedKinds(seen({ shapes: { withoutFingerprint: 5000 } }))).toEqual(["noFingerprints"]);
  expect(suspectedKinds(seen({ shapes: { withoutFingerprint: 4999 } }))).toEqual([]);
  expect(missing(seen({ shapes: { claims: 100, withoutFingerprint: 100 } }))).toContainEqual([
    ...["noFingerprints", { missingClaims: 200, missingDays: 0 }],
  ]);
});

describe("repeats after expiry", () => {
  const late = { sum: 400, squares: 1600, largest: 4, seen: 100, days: 5 };

  test("are suspected if hardly any repeat comes before", () => {
    expect(judgeKeys(seen({ repeats: 10, promptRepeats: 0, late }))).toMatchObject([
      { kind: "repeatsAfterExpiry", evidence: [{ count: 400, of: 410 }] },
    ]);
  });

  test("are not suspected if others come before, or on one day", () => {
    expect(suspectedKinds(seen({ repeats: 60, late }))).toEqual([]);
    expect(missing(seen({ repeats: 10, late: { ...late, days: 1 } }))).toEqual([
      ["repeatsAfterExpiry", { missingClaims: 0, missingDays: 2 }],
    ]);
  });
});
