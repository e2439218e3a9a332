-- Returns at most max_names of a tenant's namespaces that have records, by name, behind after_name. One look at the
-- primary key for each, however many records it has.
create function namespaces_in_use(tenant integer, after_name text, max_names integer) returns setof text
  language plpgsql stable
as $$
declare
  name text collate "C" := after_name;
begin
  for n in 1..max_names loop
    select r.namespace
      into name
      from records r
     where r.tenant_id = tenant
       and r.namespace > name
     order by r.tenant_id, r.namespace
     limit 1;
    exit when not found;
    return next name;
  end loop;
end
$$;
