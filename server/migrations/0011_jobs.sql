-- Up Migration

-- The attempts of the record's life that ended, oldest first, at most 16: an array of objects of texts
-- (store/records/read-attempts.ts). Null: none ended but the one that the row's other columns describe. Replicas that do not know
-- the column leave it as it is: an attempt that ended while one of them took the key over is missing, and if it began a
-- new life of the key, the earlier life's attempts stay and are recognised by their times.
alter table records add column past_attempts jsonb;

alter table record_jobs
  -- Whether an administrator ended the job, at `finished_at`. Replicas that do not know the column show such a job as done.
  add column cancelled boolean not null default false,
  -- How a job resolves records, as JSON, until the job is finished.
  add column resolution text,
  drop constraint record_jobs_kind_check,
  -- A replica that does not know RESOLVE fails at such a job, changes nothing, and leaves it to others.
  add constraint record_jobs_kind_check check (kind in ('RESTAMP', 'FORGET', 'DELETE', 'RESOLVE'));
