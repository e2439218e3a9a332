import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test } from "vitest";
import { VERSION } from "../../server/src/version.ts";
import { describeAdministrationOverAll } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { grant } from "../support/calls/verbs.ts";
import { startTestServer } from "../support/servers/server.ts";

const PATIENCE = { timeout: 60_000 };

describeAdministrationOverAll(
  "ListReplicas",
  (world) => {
    test("shows each live replica from any of them, with its load", async () => {
      const { database } = world();
      const other = await startTestServer(database.url, { ONCEWARD_POOL_SIZE: "9" });
      onTestFinished(() => other.stop());
      const operator = await world().operator();
      const { replicaId } = await operator.getServerInfo({});
      const { replicas } = await operator.listReplicas({});
      expect(replicas).toHaveLength(2);
      expect(replicas.map(({ id }) => id)).toEqual(replicas.map(({ id }) => id).sort());
      const second = replicas.find(({ id }) => id !== replicaId);
      expect(second).toMatchObject({ version: VERSION, degraded: [], load: { poolSize: 9, poolAwaited: 0 } });
      const [row] = await database.query<{ seen: number; started: number }>(
        `select date_part('epoch', seen_at) * 1000 as seen, date_part('epoch', started_at) * 1000 as started
         from replicas where id = $1`,
        [second?.id],
      );
      expect(second?.startedAt && timestampMs(second.startedAt)).toBeCloseTo(row?.started ?? 0, -1);
      expect(second?.seenAt && timestampMs(second.seenAt)).toBeLessThanOrEqual((row?.seen ?? 0) + 1);
      expect(second?.host).toBe(hostname());
      // Both clocks are this machine's: what is left is the error of the measurement.
      const offsets = async () =>
        (await operator.listReplicas({})).replicas.map(
          ({ clockOffset }) => clockOffset && durationMs(clockOffset),
        );
      await expect
        .poll(
          async () => (await offsets()).every((ms) => ms !== undefined && Math.abs(ms) < 60_000),
          PATIENCE,
        )
        .toBe(true);
    });

    test("shows the operations per second and the connections of a replica with calls", async () => {
      const { caller } = await world().administeredTenant();
      const operator = await world().operator();
      const { replicaId } = await operator.getServerInfo({});
      let keys = 0;
      const load = async () => {
        await grant(caller, { key: `order-${keys++}` });
        const { replicas } = await operator.listReplicas({});
        return replicas.find(({ id }) => id === replicaId)?.load;
      };
      await expect.poll(async () => (await load())?.operationsPerSecond ?? 0, PATIENCE).toBeGreaterThan(0);
      expect((await load())?.connections).toBeGreaterThan(0);
    });

    test("omits a replica without a heartbeat for ten seconds; an older one has no load", async () => {
      const { database } = world();
      await database.query(
        `insert into replicas (id, version, seen_at, clock_ahead_ms) values
         (gen_random_uuid(), 'older', now() - interval '5 seconds', null),
         (gen_random_uuid(), 'behind', now() - interval '5 seconds', -2500.4),
         (gen_random_uuid(), 'gone', now() - interval '11 seconds', null)`,
      );
      const { replicas } = await (await world().operator()).listReplicas({});
      await database.query("delete from replicas where version in ('older', 'behind', 'gone')");
      const older = replicas.find(({ version }) => version === "older");
      expect([older?.host, older?.load, older?.clockOffset]).toEqual(["", undefined, undefined]);
      expect(replicas.find(({ version }) => version === "behind")).toMatchObject({
        clockOffset: { seconds: -2n, nanos: -500_000_000 },
      });
      expect(replicas.map(({ version }) => version).sort()).toEqual([VERSION, "behind", "older"].sort());
    });

    test("has pages, whose tokens belong to this list", async () => {
      const { database } = world();
      await database.query(
        "insert into replicas (id, version, seen_at) select gen_random_uuid(), 'paged', now() + interval '1 minute' from generate_series(1, 5)",
      );
      onTestFinished(async () => {
        await database.query("delete from replicas where version = 'paged'");
      });
      const operator = await world().operator();
      const listed = await readPages("replicas", async (pageToken) => {
        const page = await operator.listReplicas({ pageSize: 2, pageToken });
        expect(page.replicas.length).toBeLessThanOrEqual(2);
        return page;
      });
      expect(listed).toHaveLength(6);
      expect(new Set(listed.map(({ id }) => id)).size).toBe(6);
      const { nextPageToken } = await operator.listReplicas({ pageSize: 1 });
      for (const request of [{ pageSize: -1 }, { pageToken: randomUUID() }]) {
        expect(await errorOf(operator.listReplicas(request))).toMatchObject({ reason: "INVALID_REQUEST" });
      }
      expect(await errorOf(operator.listTenants({ pageToken: nextPageToken }))).toMatchObject({
        reason: "INVALID_REQUEST",
      });
    });
  },
  {},
  { heartbeatMs: 200 },
);
