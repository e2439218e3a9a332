import pg from "pg";
import postgres from "postgres";

/** Postgres.js needs a socket's directory as an option; node-postgres reads it from the URL. */
export function connectPostgres(url: string) {
  const { host, port, user, database: name } = new pg.Client({ connectionString: url });
  return postgres({ host, port, username: user ?? "", database: name ?? "", max: 4 });
}
