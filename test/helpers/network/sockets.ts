/** The path of the Unix socket that a database URL of an embedded Postgres leads to. */
export function socketOf(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  return `${url.searchParams.get("host")}/.s.PGSQL.${url.port || 5432}`;
}
