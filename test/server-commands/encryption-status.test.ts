import { expect, test } from "vitest";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { encryptionKeys } from "../support/servers/encryption.ts";

/** Records with a result (under `$1`) and a checkpoint (under `$2`); more than one statement counts. */
const INSERT = `
insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
  accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
  claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner, result_key_id, result_digest,
  checkpoint_key_id, checkpoint_state)
select 1 + n % 2, 'charges', n || '-' || gen_random_uuid(), 1, 2, 1, false, false, 30000, 60, 60, 60, now(), now(),
       now(), now(), now(), '', '', $1::smallint, '\\x00', $2::smallint, '\\x00'
  from generate_series(1, $3::int) n`;

test("encryption-status counts values by key, and fails without a key that they need", async () => {
  const database = await createDatabaseOfTest();
  const run = (keys: Readonly<Record<string, string>> = {}) =>
    runHere(["encryption-status"], { ...settingsFor(database.url), ...keys });
  expect(await run()).toMatchObject({
    exit: 0,
    stdout: "plain form: 0 results, 0 checkpoints\nNo server with keys has used this database.\n",
  });

  await database.query(INSERT, [null, null, 2]);
  await database.query(INSERT, [2, 1, 12_000]);
  await database.query(
    "insert into encryption_pass (key_id, records_examined, records_changed) values (2, 70, 5)",
  );
  const all = await run(encryptionKeys(2, 1, 3));
  expect(all.stdout.split("\n").slice(0, 4)).toEqual([
    "plain form: 2 results, 2 checkpoints",
    "key 1 (decrypts): 0 results, 12000 checkpoints",
    "key 2 (encrypts): 12000 results, 0 checkpoints",
    "key 3 (decrypts): 0 results, 0 checkpoints",
  ]);
  expect(all).toMatchObject({ exit: 1, stderr: expect.stringContaining("4 values are in plain form") });
  expect(await run(encryptionKeys("none", 2, 1))).toMatchObject({ exit: 0 });
  await database.query("delete from records where result_key_id is null");
  expect(all.stdout).toMatch(/The pass to key 2 of .* is running: 70 records examined, 5 changed/);
  expect(await run(encryptionKeys(2, 1, 3))).toMatchObject({ exit: 0 });

  // A job that waits to store a result reads it under the key of its creation.
  await database.query(
    `insert into record_jobs (tenant_id, namespace, kind, terms, starts_at, resolution, finished_at) values
       (1, 'charges', 'RESOLVE', '{}', now(), '{"kind": "complete", "keyId": 3}', null),
       (1, 'charges', 'RESOLVE', '{}', now(), '{"kind": "release"}', null), (1, 'charges', 'RESOLVE', '{}', now(), null, now())`,
  );
  expect((await run(encryptionKeys(2, 1, 3))).stdout).toContain("key 3 (decrypts): 1 results, 0 checkpoints");

  const lacking = await run(encryptionKeys(2));
  expect(lacking.stdout).toContain("key 1 (not configured): 0 results, 12000 checkpoints");
  expect(lacking.stderr).toContain("ONCEWARD_ENCRYPTION_KEYS lacks keys that stored values need: 1, 3.");
  expect(lacking.exit).toBe(1);
});
