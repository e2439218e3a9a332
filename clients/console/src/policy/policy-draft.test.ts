import { create } from "@bufbuild/protobuf";
import { Policy_LateKeys, Policy_OnLeaseExpiry, PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { describe, expect, test } from "vitest";
import {
  changedInForce,
  fieldOfPath,
  fieldWords,
  POLICY_DRAFTS,
  policyText,
  readDraft,
  type SavedPolicy,
} from "./policy-fields.ts";

const POLICY = create(PolicySchema, {
  keyRetention: { seconds: 259_200n },
  onLeaseExpiry: Policy_OnLeaseExpiry.HOLD,
  lateKeys: Policy_LateKeys.REFUSE,
  maxResultBytes: 4_096,
  requireFingerprint: false,
});

function saved(etag: string, changes: object = {}): SavedPolicy {
  return { etag, own: { ...policyText(POLICY), ...changes } };
}

const { start, type, changed, follow } = POLICY_DRAFTS;

describe("The form of a policy", () => {
  test("is written as the command line writes values, and empty for what is inherited", () => {
    expect(policyText(POLICY)).toEqual({
      ...policyText(create(PolicySchema)),
      ...{ keyRetention: "72h", resultRetention: "", failureRetention: "", defaultLease: "", maxLease: "" },
      ...{ onLeaseExpiry: "hold", maxResultBytes: "4KiB", lateKeys: "refuse", requireFingerprint: "false" },
      providerLink: "",
    });
    expect(fieldWords("keyRetention", "15m")).toBe("15m");
    expect(fieldWords("keyRetention", "72h")).toBe("72h");
    expect(fieldWords("maxResultBytes", "4KiB")).toBe("4KiB");
    expect(fieldWords("maxResultBytes", "5000B")).toBe("5000");
    expect(fieldWords("onLeaseExpiry", "hold")).toBe("hold");
    expect(fieldWords("maxLease", "")).toBe("inherited");
  });

  test("changes a field only by another value, not by another way to write it", () => {
    let draft = type(start(saved("a")), "keyRetention", " 72 h ");
    expect(changed(draft)).toEqual([]);
    draft = type(draft, "keyRetention", "96h");
    expect(changed(draft)).toEqual(["keyRetention"]);
  });

  test("asks to change what was changed, and unsets what was emptied", () => {
    let draft = type(start(saved("a")), "keyRetention", "");
    draft = type(draft, "maxResultBytes", "1 MiB");
    draft = type(draft, "lateKeys", "require-time");
    draft = type(draft, "requireFingerprint", "true");
    expect(readDraft(draft)).toEqual({
      policy: {
        ...{ maxResultBytes: 1_048_576, requireFingerprint: true },
        lateKeys: Policy_LateKeys.REQUIRE_TIME,
      },
      paths: [
        "policy.key_retention",
        "policy.max_result_bytes",
        "policy.require_fingerprint",
        "policy.late_keys",
      ],
      problems: {},
    });
  });

  test("says which text it can't read", () => {
    const draft = type(type(start(saved("a")), "maxLease", "soon"), "maxResultBytes", "2GiB");
    expect(readDraft(type(start(saved("a")), "keyRetention", "500d")).problems).toEqual({
      keyRetention: "It must be 1m to 400d.",
    });
    expect(Object.keys(readDraft(draft).problems)).toEqual(["maxLease", "maxResultBytes"]);
    expect(fieldOfPath("namespace.policy.max_lease")).toBe("maxLease");
    expect(fieldOfPath("namespace.name")).toBeUndefined();
  });

  test("keeps what was typed when another person saved, and shows both values", () => {
    const draft = type(start(saved("a")), "keyRetention", "7d");
    const followed = follow(draft, saved("b", { keyRetention: "1d", maxLease: "1h" }));
    expect(followed.typed).toMatchObject({ keyRetention: "7d", maxLease: "1h" });
    expect(followed.saved.etag).toBe("b");
    expect(followed.savedByOthers).toEqual([
      { field: "keyRetention", before: "72h", now: "1d", typed: "7d" },
      { field: "maxLease", before: "", now: "1h", typed: undefined },
    ]);
    expect(changed(followed)).toEqual(["keyRetention"]);
  });

  test("follows a newer state silently where nothing is left to save", () => {
    expect(follow(start(saved("a")), saved("b", { maxLease: "1h" })).savedByOthers).toEqual([]);
    const same = type(start(saved("a")), "keyRetention", "168h");
    expect(follow(same, saved("b", { keyRetention: "7d" }))).toEqual(
      start(saved("b", { keyRetention: "7d" })),
    );
  });

  test("shows which values in force change", () => {
    const now = policyText(POLICY);
    expect(changedInForce(now, { ...now, maxLease: "1h" })).toEqual(["maxLease"]);
  });
});
