-- Marks that this database lacks what was written last. Run it as the owner after a restore, or after the promotion of an
-- asynchronous standby, before the first replica connects: psql --file mark-loss.sql. deploy/recovery.md says when.

-- Where late keys are refused, keys without a record from before this time are refused.
update installation set records_lost_at = now();

-- Unfinished records, and released ones, may have been completed in the part that is lost: they are held for a decision, as
-- under HOLD. Reads all records.
update records
   set state = 1, holds_on_lease_expiry = true, reclaim_within_s = null
 where state in (1, 3);
