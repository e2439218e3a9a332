-- Marks that this database lacks what was written last. Run it as the owner after a restore, or after the promotion of an
-- asynchronous standby, before the first replica connects: psql --file mark-loss.sql. deploy/recovery.md says when.

-- Where late keys are refused, keys without a record from before this time are refused.
update installation set records_lost_at = now();

-- Unfinished records, and released ones, may have been completed in the part that is lost, or are still held by a claim of it. They
-- are held for a decision, as under HOLD, also after a search gives them back, from a lease after now and for a whole retention. Reads
-- all records. Citus takes these sums only with `coalesce`, which changes no value.
update records
   set state = 1, holds_on_lease_expiry = true, reclaim_within_s = null, pending_until = null, claim_id = '',
       lease_expires_at = greatest(lease_expires_at, now() + coalesce(lease_ms, null) * interval '1 millisecond'),
       expires_at = greatest(expires_at,
         now() + coalesce(greatest(key_retention_s * 1000::bigint, lease_ms), null) * interval '1 millisecond'),
       past_attempts = jsonb_set(past_attempts, '{-1,holds}', '"0"')
 where state in (1, 3);
