import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { createWorld } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { keysOfOneShard } from "../support/database/shards.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { startTestServer } from "../support/servers/server.ts";
import type { TestTenant } from "../support/servers/tenants.ts";

/** Longer than anything may be decided by what was known before. */
const AUTHORITY_MS = 10_000;

const database = useDatabase();

describe("A call that is delayed before the database until its principal has expired", () => {
  beforeEach(() => {
    // Of the clocks only this one: everything else takes its real time. A server whose clock stops beside the machine's uptime
    // takes the machine for suspended, and would drop the credentials: the interval of that check stops, too.
    vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A caller whose record is ORDER, of a server whose way to the database can be held. */
  async function newHeldUp() {
    const { proxy, url } = await proxyDatabase(database.url);
    const own = await startTestServer(url);
    onTestFinished(() => own.stop());
    const { tenant, caller, admin, adminKey } = await createWorld(database, own).administeredTenant();
    const { fencingToken } = await grant(caller, { owner: "holder" });
    await admin.getTenant({});
    proxy.setMode("hold");
    return {
      tenant,
      admin,
      adminKey,
      client: caller,
      fencingToken,
      /** Sends a call, and waits until the server has taken it: it answers the next one on the connection without the database. */
      async send<Reply>(
        call: () => Promise<Reply>,
        next: () => Promise<unknown> = () => caller.claim({}),
      ): Promise<{ readonly ended: Promise<Reply> }> {
        const ended = call();
        ended.catch(() => {});
        expect(await errorOf(next())).toMatchObject({ reason: "INVALID_REQUEST" });
        return { ended };
      },
      async revokeAndGoOn(key = tenant.apiKey) {
        await database.query("update api_keys set revoked_at = now() where id = $1", [parseApiKey(key)?.id]);
        vi.advanceTimersByTime(AUTHORITY_MS);
        proxy.setMode("forward");
      },
    };
  }

  async function stateOf(tenant: TestTenant) {
    return database.query("select key, owner, state from records where tenant_id = $1 order by key", [
      tenant.id,
    ]);
  }
  const STILL_HELD = { key: ORDER.key, owner: "holder", state: 1 };
  const REVOKED = { reason: "CREDENTIAL_INVALID" };

  test("is decided by the current credential: a claim", async () => {
    const { client, tenant, send, revokeAndGoOn } = await newHeldUp();
    const [one = "", two = "", three = "", four = ""] = await keysOfOneShard(database, 4);
    const claim = (key: string) => () => client.claim({ ...ORDER, key, owner: "late" });
    // As many statements as claims may have under way, so that the next one is queued.
    const ahead = [await send(claim(one)), await send(claim(two)), await send(claim(three))];
    const late = await send(claim(four));
    await revokeAndGoOn();
    expect(await errorOf(late.ended)).toMatchObject(REVOKED);
    // Those that were sent before may be granted, or have used up the time of a statement.
    const sent = await Promise.allSettled(ahead.map(({ ended }) => ended));
    const granted = [one, two, three].filter((_, index) => sent[index]?.status === "fulfilled");
    const claimed = (await stateOf(tenant)).map(({ key }) => key);
    expect(claimed).toEqual(expect.arrayContaining([...granted, ORDER.key]));
    expect(claimed).not.toContain(four);
  });

  test("is decided by the current credential: a release", async () => {
    const { client, tenant, fencingToken, send, revokeAndGoOn } = await newHeldUp();
    await send(() => client.release({ ...ORDER, fencingToken: fencingToken + 1n }));
    const late = await send(() => client.release({ ...ORDER, fencingToken }));
    await revokeAndGoOn();
    expect(await errorOf(late.ended)).toMatchObject(REVOKED);
    expect(await stateOf(tenant)).toEqual([STILL_HELD]);
  });

  test("is decided by the current credential: a batch's second item on a key", async () => {
    const { client, tenant, fencingToken, send, revokeAndGoOn } = await newHeldUp();
    const held = { ...ORDER, fencingToken };
    const batch = await send(() =>
      client.batch({
        items: [
          { request: { case: "extendLease", value: held } },
          { request: { case: "release", value: held } },
        ],
      }),
    );
    await revokeAndGoOn();
    const { items } = await batch.ended;
    const [extension, release] = items.map(({ response }) => response);
    expect(extension?.case).toBe("extendLease");
    expect(release).toMatchObject({ case: "error", value: { reason: ErrorReason.CREDENTIAL_INVALID } });
    expect(await stateOf(tenant)).toEqual([STILL_HELD]);
  });

  test("is decided by the current credential: a change of a policy", async () => {
    const { admin, adminKey, tenant, send, revokeAndGoOn } = await newHeldUp();
    const policy = { requireFingerprint: true };
    const change = await send(
      () => admin.updateTenant({ tenant: { policy } }),
      () => admin.createApiKey({}),
    );
    await revokeAndGoOn(adminKey);
    expect(await errorOf(change.ended)).toMatchObject(REVOKED);
    const unchanged = [{ require_fingerprint: null }];
    const rows = "select require_fingerprint from tenants where id = $1";
    expect(await database.query(rows, [tenant.id])).toEqual(unchanged);
  });
});
