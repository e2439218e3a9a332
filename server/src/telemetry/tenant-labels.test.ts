import { expect, test } from "vitest";
import { MAX_TENANT_LABELS, TenantLabels } from "./tenant-labels.ts";

const tenants = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: index + 1, name: `tenant-${index + 1}` }));

test("a tenant has no label before the list that decides it", async () => {
  const labels = new TenantLabels();
  expect(labels.labelOf(1)).toBeUndefined();
  await labels.refresh(async () => tenants(1));
  expect([labels.labelOf(1), labels.labelOf(2)]).toEqual(["tenant-1", undefined]);
  await labels.refresh(async () => tenants(2));
  expect(labels.labelOf(2)).toBe("tenant-2");
});

test("tenants beyond the full list share a label", async () => {
  const labels = new TenantLabels();
  await labels.refresh(async () => tenants(MAX_TENANT_LABELS));
  expect(labels.labelOf(MAX_TENANT_LABELS)).toBe(`tenant-${MAX_TENANT_LABELS}`);
  expect(labels.labelOf(MAX_TENANT_LABELS + 1)).toBe("other");
});

test("a tenant that was deleted before a list contained it shares the label of the others", async () => {
  const labels = new TenantLabels();
  await labels.refresh(async () => tenants(1));
  expect(labels.labelOf(7)).toBeUndefined();
  await labels.refresh(async () => tenants(1));
  expect(labels.labelOf(7)).toBe("other");
});

test("a tenant that is asked for while the list is read waits for the next list", async () => {
  const labels = new TenantLabels();
  await labels.refresh(async () => {
    labels.labelOf(2);
    return tenants(1);
  });
  expect(labels.labelOf(2)).toBeUndefined();
});

test("a list that could not be read changes nothing", async () => {
  const labels = new TenantLabels();
  await labels.refresh(async () => tenants(1));
  labels.labelOf(2);
  await expect(labels.refresh(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect([labels.labelOf(1), labels.labelOf(2)]).toEqual(["tenant-1", undefined]);
});
