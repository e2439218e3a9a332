-- Up Migration

-- While it is the end of the lease, the effect of the newest claim has not begun (ClaimRequest.marks_begin). The previous version
-- of the server, which takes over and extends without it, so ends the mark, and the record is held as before.
alter table records add column pending_until timestamptz;
