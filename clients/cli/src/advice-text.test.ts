import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { GetRetentionAdviceResponse_Verdict, GetRetentionAdviceResponseSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { HOUR_MS } from "#words/durations";
import { ADVICE_COLUMNS, describeAdvice } from "./advice-text.ts";
import { cellText } from "./output.ts";

const ADVICE = create(GetRetentionAdviceResponseSchema, {
  namespace: "charges",
  keyRetention: durationFromMs(24 * HOUR_MS),
  observedSince: timestampFromMs(Date.UTC(2026, 0, 31, 9)),
  maxLatePerMillion: 1,
  verdict: GetRetentionAdviceResponse_Verdict.TOO_SHORT,
  advisedRetention: durationFromMs(168 * HOUR_MS),
  candidates: [
    {
      keyRetention: durationFromMs(24 * HOUR_MS),
      records: 12_345.6,
      bytes: 5 * 1024 ** 2,
      evidence: {
        case: "late",
        value: { perMonth: 16, perMonthLow: 3.2, perMonthHigh: 1234.5, daysWithLate: 2, daysObserved: 29.6 },
      },
    },
    {
      keyRetention: durationFromMs(168 * HOUR_MS),
      evidence: { case: "insufficient", value: { missingDays: 1, missingClaims: 2_995_731n } },
    },
  ],
});

test("advice is the verdict, and a table of candidates", () => {
  expect(describeAdvice(ADVICE)).toBe(`Key retention in charges: 24h; claims since 2026-01-31T09:00:00Z.
Too short. About 16 duplicates a month come later, and take effect a second time. 7d catches all that were seen, and shows whether others come later.

KEY RETENTION  LATE A MONTH      ON DAYS  RECORDS  SIZE
24h (now)      16 (3.2 – 1,240)  2 of 30  12,300   5MiB
7d             needs 1 more day  -        0        -
`);
});

test("a list of namespaces begins with the verdict on each, and says why", () => {
  expect(ADVICE_COLUMNS.map(([, cell]) => cellText(cell(ADVICE)))).toEqual([
    ...["charges", "24h", "Too short", "2026-01-31T09:00:00Z"],
    expect.stringMatching(/^About 16 duplicates a month come later, /),
  ]);
});
