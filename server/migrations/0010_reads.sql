-- When a key was last used, to the hour. Replicas that do not know the column leave it as it is.
alter table api_keys add column last_used_at timestamptz;
