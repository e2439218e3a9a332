import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { bulkCommand, countRequest, draftOf, resolveRequest } from "./bulk.ts";

const FILTERS = { namespace: "payouts", owner: "worker 3", before: "2026-11-23T18:00:00.000Z" };
const DRAFT = { ...draftOf(FILTERS), checkpoint: "charged", reason: "no bank account" };

describe("Resolving many records", () => {
  it("counts exactly what it would change", () => {
    const counted = countRequest(DRAFT);
    expect(counted).toMatchObject({ namespace: "payouts", owner: "worker 3", validateOnly: true });
    expect(counted).not.toHaveProperty("expectedCount");
    const { leaseExpiredBefore } = counted;
    expect(leaseExpiredBefore && timestampDate(leaseExpiredBefore as never)).toEqual(
      new Date(FILTERS.before),
    );
    expect(resolveRequest(DRAFT, 12n)).toEqual({ ...counted, validateOnly: false, expectedCount: 12n });
  });

  it("has a command line that counts the same records", () => {
    expect(bulkCommand(DRAFT)).toBe(
      "onceward records resolve payouts --owner 'worker 3' --checkpoint charged " +
        "--lease-expired-before 2026-11-23T18:00:00.000Z --reason 'no bank account' --all-matching --release --dry-run",
    );
    const completed = { ...DRAFT, kind: "complete", result: { ...DRAFT.result, text: '{"id": 7}' } } as const;
    expect(bulkCommand(completed)).toContain(`--all-matching --complete '{"id": 7}' --dry-run`);
    const empty = { ...DRAFT, kind: "complete" } as const;
    expect(bulkCommand(empty)).toContain("--all-matching --complete '' --dry-run");
  });
});
