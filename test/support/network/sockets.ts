/** Returns the path of the Unix socket in a database URL of an embedded Postgres. */
export function socketOf(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  return `${url.searchParams.get("host")}/.s.PGSQL.${url.port || 5432}`;
}
