import { sqlStateOf } from "../../database/statement-errors.ts";
import type { Check } from "../findings.ts";

/**
 * Stores a record of 256 KiB, more than free pages of a table in use have, and rolls it back to the savepoint of the inner block.
 * A missing privilege or table, and a database that accepts no writes, have findings of their own.
 */
const tryWrite = {
  name: "try_write",
  text: `
do $$
declare
  payload bytea := (select string_agg(uuid_send(gen_random_uuid()), '') from generate_series(1, 16384));
begin
  if current_setting('transaction_read_only') = 'on' then return; end if;
  -- The transaction gets an id, so that its empty commit would wait for a synchronous standby.
  perform set_config('synchronous_commit', 'off', true);
  begin
    insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
      accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
      claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner, result_payload)
    values (0, 'doctor', gen_random_uuid(), 1, 1, 1, false, false, 1, 60, 60, 60, now(), now(), now(), now(), now(), '', '', payload);
    raise sqlstate 'OW000';
  exception
    when sqlstate 'OW000' or insufficient_privilege or undefined_table or undefined_column then null;
  end;
end
$$`,
};

/** Looks whether Postgres can store a record, such as on a full disk. */
export const writesCheck: Check = {
  name: "writes",
  async examine({ runner }) {
    try {
      await runner.run(tryWrite, []);
      return [];
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      const sqlState = sqlStateOf(cause);
      if (!(cause instanceof Error) || sqlState === undefined) throw error;
      const summary = `Postgres refuses to store a record with SQLSTATE ${sqlState}: ${cause.message}.`;
      return [{ id: "writes_fail", summary }];
    }
  },
};
