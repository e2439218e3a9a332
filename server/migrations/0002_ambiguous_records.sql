-- Statement by statement

-- Lists and counts a tenant's ambiguous records, the oldest first. Built beside callers, as every index on a large table.
drop index concurrently if exists records_ambiguous_from;
create index concurrently records_ambiguous_from on records (tenant_id, ambiguous_from, namespace, key)
  where ambiguous_from is not null;
