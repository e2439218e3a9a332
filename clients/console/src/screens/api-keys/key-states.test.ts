import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type ApiKey, ApiKey_Role, ApiKeySchema } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { describe, expect, test } from "vitest";
import { keyState, parseNamespaces } from "../../parts/api-key/key-state.ts";
import { findSuccessors, rotationStep } from "./key-states.ts";

const NOW = new Date("2026-11-23T12:30:00Z");

interface Times {
  readonly createdAt?: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
  readonly lastUsedAt?: string;
}

function keyOf(id: string, times: Times = {}, rest: { label?: string; namespaces?: string[] } = {}): ApiKey {
  const stamps = Object.entries(times).map(([name, at]) => [name, timestampFromDate(new Date(at))]);
  return create(ApiKeySchema, { id, role: ApiKey_Role.CALLER, ...rest, ...Object.fromEntries(stamps) });
}

describe("An API key", () => {
  test("is revoked before it is expired, and expires soon in the last 14 days", () => {
    expect(keyState(keyOf("a"), NOW)).toBe("active");
    expect(keyState(keyOf("a", { expiresAt: "2026-12-24T00:00:00Z" }), NOW)).toBe("active");
    expect(keyState(keyOf("a", { expiresAt: "2026-12-01T00:00:00Z" }), NOW)).toBe("expiring");
    expect(keyState(keyOf("a", { expiresAt: "2026-11-23T12:30:00Z" }), NOW)).toBe("expired");
    const ended = { expiresAt: "2026-11-01T00:00:00Z", revokedAt: "2026-10-01T00:00:00Z" };
    expect(keyState(keyOf("a", ended), NOW)).toBe("revoked");
  });

  test("is revoked only after its successor is used, and an hour after its own last hour of use", () => {
    const used = keyOf("new", { lastUsedAt: "2026-11-23T12:00:00Z" });
    const step = (old: Times, successor: ApiKey | undefined = used) =>
      rotationStep(keyOf("old", old), successor, NOW);
    expect(rotationStep(keyOf("old"), undefined, NOW)).toEqual({ kind: "create" });
    expect(step({}, keyOf("new"))).toEqual({ kind: "switch" });
    expect(step({ lastUsedAt: "2026-11-23T12:00:00Z" })).toEqual({ kind: "wait", quietMs: 0 });
    expect(step({ lastUsedAt: "2026-11-23T11:00:00Z" })).toEqual({ kind: "wait", quietMs: 1_800_000 });
    expect(step({ lastUsedAt: "2026-11-23T10:00:00Z" })).toEqual({ kind: "revoke", quietMs: 5_400_000 });
    expect(step({})).toEqual({ kind: "revoke", quietMs: undefined });
    expect(step({ revokedAt: "2026-11-23T12:00:00Z" })).toEqual({ kind: "done" });
  });

  test("has the newer active keys of its scope and label as successors", () => {
    const scope = { label: "worker", namespaces: ["a", "b"] };
    const old = keyOf("old", { createdAt: "2026-01-01T00:00:00Z" }, scope);
    const later = { createdAt: "2026-02-01T00:00:00Z" };
    const keys = [
      old,
      keyOf("successor", later, { label: "worker", namespaces: ["b", "a"] }),
      keyOf("older", { createdAt: "2025-01-01T00:00:00Z" }, scope),
      keyOf("wider", later, { label: "worker" }),
      keyOf("other", later, { ...scope, label: "batch" }),
      keyOf("revoked", { ...later, revokedAt: "2026-03-01T00:00:00Z" }, scope),
    ];
    expect(findSuccessors(old, keys, NOW).map(({ id }) => id)).toEqual(["successor"]);
  });

  test("takes its namespaces from lines, commas or spaces", () => {
    expect(parseNamespaces(" a, b\nc  a ")).toEqual(["a", "b", "c"]);
    expect(parseNamespaces("")).toEqual([]);
  });
});
