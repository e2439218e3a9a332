import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { KeyDefect, KeyQualitySchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { describeQuality, QUALITY_COLUMNS } from "./key-quality-text.ts";
import { cellText } from "./output.ts";

const QUALITY = create(KeyQualitySchema, {
  namespace: "charges",
  claims: 12_345n,
  observedSince: timestampFromMs(Date.UTC(2026, 0, 31, 9)),
  suspicions: [
    {
      defect: KeyDefect.NEW_KEY_PER_RETRY,
      evidence: [
        {
          measure: "other_key_within_15_minutes",
          count: 160,
          of: 8192,
          shareLow: 0.016646,
          shareHigh: 0.0227615,
        },
      ],
      examples: [{ key: "a-1" }, { key: "a-2" }],
      advice: "Make the key once.",
    },
  ],
  undecided: [{ defect: KeyDefect.UUID_PER_CLAIM, insufficient: { missingDays: 0, missingClaims: 655n } }],
});

test("suspicions are shown with their evidence, examples and advice", () => {
  expect(
    describeQuality(QUALITY),
  ).toBe(`Keys in charges: 12,345 claims, since 2026-01-31T09:00:00Z. Intervals hold with 95 %.

Suspected: A new key for each retry
  Equal fingerprints that came again within 15 minutes under another key: 160 of 8,192 (1.66 % – 2.28 %)
  for example: a-1, a-2
  Make the key once.

Not known yet: A new UUID for each claim (needs 655 more claims).
`);
});

test("a list of namespaces says what is suspected in each", () => {
  const cells = (quality: typeof QUALITY) => QUALITY_COLUMNS.map(([, cell]) => cellText(cell(quality)));
  expect(cells(QUALITY)).toEqual(["charges", "12,345", "2026-01-31T09:00:00Z", "new key per retry"]);
  const nothing = create(KeyQualitySchema, { namespace: "mail" });
  expect(cells(nothing).at(-1)).toBe("nothing");
  expect(describeQuality(nothing)).toContain("no claim yet");
  expect(describeQuality(nothing)).toContain("Nothing is suspected.");
});

test("late duplicates are not suspected of the keys, and lead to the advice on the retention", () => {
  const suspicions = [{ defect: KeyDefect.REPEATS_AFTER_EXPIRY, advice: "Use a longer key retention." }];
  const late = create(KeyQualitySchema, { namespace: "charges", suspicions });
  expect(QUALITY_COLUMNS.map(([, cell]) => cellText(cell(late))).at(-1)).toBe("nothing");
  expect(describeQuality(late)).toContain("Nothing is suspected.");
  expect(describeQuality(late)).toContain("Use a longer key retention.\n  onceward advice charges\n");
});
