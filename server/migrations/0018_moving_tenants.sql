-- Up Migration

-- Since when the tenant is moving to another installation; null: it is not. Its calls are refused, as those of a suspended tenant,
-- with a retry time: the other installation will answer them (deploy/cells.md).
alter table tenants add column moving_since timestamptz;
