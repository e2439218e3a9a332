/** The page that parameters 1 to 4 name, as a common table expression `page`: tenant, namespace, key before it, size. */
export const PAGE = `
page as materialized (
  select tenant_id, namespace, key
    from records
   where tenant_id = $1::int
     and namespace = $2::text
     and key > $3::text
   order by key
   limit $4::int
)`;

/** A page of records of one namespace, by key. */
export interface RecordPage {
  readonly tenantId: number;
  readonly namespace: string;
  /** Empty: from the first one. */
  readonly afterKey: string;
  readonly limit: number;
}

/** What was done to a page, or would be. */
export interface PageOutcome {
  /** Fewer than asked for means that the namespace has no more. */
  readonly examined: number;
  readonly lastKey: string | undefined;
  readonly changed: number;
  /** Of those changed. */
  readonly forgotten: number;
}
