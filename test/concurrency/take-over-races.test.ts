import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { describeError } from "../support/calls/errors.ts";
import { endLeases, granted } from "../support/calls/records.ts";
import { bytes } from "../support/calls/verbs.ts";
import { lockRows, openConnection, untilBlocked } from "../support/database/connections.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useCaller, useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const { tenant, client } = useCaller({ database, server });

const FINGERPRINT = Buffer.alloc(32, 1);
const OTHER_FINGERPRINT = "\\x02";

/** Changes of a released record between a claim's read and its take-over, and the claim's answer. */
const CHANGES: Readonly<Record<string, { readonly change: string; readonly answer: unknown }>> = {
  "is claimed": {
    change: "update records set state = 1, attempt = 2, fencing_token = fencing_token + 1, owner = 'other'",
    answer: { case: "inProgress", value: { owner: "other", attempt: 2 } },
  },
  "is claimed, and its lease runs out again": {
    change: "update records set state = 1, attempt = 2, lease_expires_at = now() - interval '1 second'",
    answer: { case: "claimed", value: { attempt: 3 } },
  },
  "is claimed to be held, and its lease runs out": {
    change:
      "update records set state = 1, holds_on_lease_expiry = true, lease_expires_at = now() - interval '1 second'",
    answer: { case: "ambiguous" },
  },
  "is claimed to be held, and its lease runs out before its effect begins": {
    change: `update records set state = 1, attempt = 2, holds_on_lease_expiry = true,
                  lease_expires_at = now() - interval '1 second', pending_until = now() - interval '1 second'`,
    answer: { case: "claimed", value: { attempt: 3 } },
  },
  "is completed, and its lease would have run out": {
    change: `update records set state = 2, settled_at = now(), lease_expires_at = now() - interval '1 second', result_kind = 1,
                  result_digest = '\\x00', result_payload = 'paid', result_expires_at = now() + interval '1 hour'`,
    answer: { case: "completed", value: { result: { payload: bytes("paid") } } },
  },
  "is bound to another fingerprint": {
    change: `update records set fingerprint = '${OTHER_FINGERPRINT}'`,
    answer: { reason: "FINGERPRINT_MISMATCH" },
  },
  "is forgotten": {
    change: "update records set state = 0",
    answer: { case: "claimed", value: { attempt: 1 } },
  },
  expires: {
    change: "update records set state = 2, expires_at = now()",
    answer: { case: "claimed", value: { attempt: 1 } },
  },
  "is swept": { change: "delete from records", answer: { case: "claimed", value: { attempt: 1 } } },
  "stays released": {
    change: "update records set state = 3",
    answer: { case: "claimed", value: { attempt: 2 } },
  },
};

test.each(Object.entries(CHANGES))(
  "a claim of a released key that %s in between is answered from the changed record",
  async (what, { change, answer }) => {
    const id = { namespace: "charges", key: what.replaceAll(" ", "-"), fingerprint: FINGERPRINT };
    const { fencingToken } = granted(await client.claim(id));
    await client.release({ namespace: id.namespace, key: id.key, fencingToken });
    const other = await openConnection(database);
    await lockRows(other, tenant, [id.key]);
    // Both are awaited together, because the claim may be answered before the commit.
    const claiming = client.claim(id).then(({ outcome }) => outcome, describeError);
    await untilBlocked(database);
    await other.query(`${change} where tenant_id = $1 and key = $2`, [tenant.id, id.key]);
    await other.query("commit");
    const answered = await claiming;
    expect(answered).toMatchObject(answer as object);
    if ("case" in answered && answered.case === "claimed") {
      expect(answered.value.fencingToken).toBeGreaterThan(fencingToken);
    }
  },
);

test("when the lease has ended, either its effect begins or the next claim gets the key", async () => {
  const held = await createTenant(database, { on_lease_expiry: "HOLD" });
  const caller = connectClient(server, held.apiKey);
  const ids = Array.from({ length: 40 }, (_, n) => ({ namespace: "charges", key: `order-${n}` }));
  const claims = await Promise.all(
    ids.map(async (id) => granted(await caller.claim({ ...id, marksBegin: true }))),
  );
  await endLeases(database, held);
  const races = ids.map(async (id, n) => {
    const fencingToken = claims[n]?.fencingToken ?? 0n;
    const claim = () => caller.claim(id).then(({ outcome }) => outcome.case === "claimed");
    const begin = () =>
      caller.extendLease({ ...id, fencingToken, begin: true }).then(
        () => true,
        () => false,
      );
    const [granted, began] = await Promise.all([claim(), begin()]);
    return granted !== began;
  });
  expect(await Promise.all(races)).toEqual(ids.map(() => true));
});
