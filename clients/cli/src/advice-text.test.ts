import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { GetRetentionAdviceResponseSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { ADVICE_COLUMNS, describeAdvice } from "./advice-text.ts";
import { cellText } from "./output.ts";

const HOUR_MS = 3_600_000;

type Init = Extract<MessageInitShape<typeof GetRetentionAdviceResponseSchema>, { $typeName?: never }>;

function adviceWith(recommendation: NonNullable<Init["recommendation"]>) {
  return create(GetRetentionAdviceResponseSchema, {
    namespace: "charges",
    keyRetention: durationFromMs(24 * HOUR_MS),
    observedSince: timestampFromMs(Date.UTC(2026, 0, 31, 9)),
    maxLatePerMillion: 1,
    recommendation,
    candidates: [
      {
        keyRetention: durationFromMs(24 * HOUR_MS),
        records: 12_345.6,
        bytes: 5 * 1024 ** 2,
        evidence: {
          case: "late",
          value: {
            perMonth: 16,
            perMonthLow: 3.2011,
            perMonthHigh: 1234.5,
            daysWithLate: 2,
            daysObserved: 29.6,
            maxPerMillion: 0.5678,
          },
        },
      },
      {
        keyRetention: durationFromMs(168 * HOUR_MS),
        evidence: { case: "insufficient", value: { missingDays: 1, missingClaims: 2_995_731n } },
      },
    ],
  });
}

test("advice is a table of candidates with the recommendation", () => {
  const advice = adviceWith({ case: "sufficientRetention", value: durationFromMs(24 * HOUR_MS) });
  expect(
    describeAdvice(advice),
  ).toBe(`Key retention in charges: 24h; claims since 2026-01-31T09:00:00Z. Intervals hold with 95 %.
Too short. About 16 duplicates a month come later, and take effect a second time. No longer retention was observed that would have caught all of them.

KEY RETENTION  LATE A MONTH  INTERVAL     ON DAYS  AT MOST A MILLION  RECORDS  SIZE   MISSING
24h (now)      16            3.2 – 1,235  2 of 30  0.568              12,346   5 MiB
7d             -             -            -        -                  0        -      needs 1 more day and 2,995,731 more claims

24h is enough for at most 1 late in a million claims, the one in force.
`);
});

test.each([
  [
    { case: "insufficient" as const, value: { missingDays: 3, missingClaims: 0n } },
    "For at most 1 late in a million claims: needs 3 more days.",
  ],
  [
    { case: "none" as const, value: {} },
    "No retention of these is enough for at most 1 late in a million claims.",
  ],
])("advice ends with what the observations are enough for", (recommendation, text) => {
  expect(describeAdvice(adviceWith(recommendation))).toMatch(new RegExp(`\n${text}\n$`));
});

test("a list of namespaces begins with the verdict on each, and says why", () => {
  const advice = adviceWith({ case: "insufficient", value: { missingDays: 3, missingClaims: 0n } });
  expect(ADVICE_COLUMNS.map(([, cell]) => cellText(cell(advice)))).toEqual([
    ...["charges", "24h", "Too short", "2026-01-31T09:00:00Z"],
    expect.stringMatching(/^About 16 duplicates a month come later, /),
  ]);
});
