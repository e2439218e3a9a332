-- Up Migration

-- When the lease expired of the claim that the newest one took over, so that its effect is unknown. It is also the row's lease
-- once the newest claim is given back.
alter table records add column unknown_since timestamptz;
