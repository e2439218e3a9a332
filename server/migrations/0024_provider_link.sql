-- Up Migration

-- Where a person looks up whether the effect of an ambiguous record happened (policy.proto). A replica of an older version leaves
-- the column unset.
alter table tenants add column provider_link text;
alter table namespaces add column provider_link text;
