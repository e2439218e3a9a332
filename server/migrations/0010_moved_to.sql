-- Up Migration

-- The address at which a tenant that has moved to another installation is served; null: it is not known here.
alter table tenants add column moved_to text;
