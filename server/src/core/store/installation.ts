import type { Runner } from "./pool.ts";

/** The installation as one statement read it. */
export interface InstallationLook {
  /**
   * Identifies this installation among all that share a Redis. Random, and replaced after each restore or
   * promotion.
   */
  readonly id: string;
  /** Whether the id was created in this database; `unmarked` if no replica has used the database yet. */
  readonly origin: "here" | "elsewhere" | "unmarked";
  /**
   * A fencing token that no claim gets: higher than all earlier ones, unless the database went back in time.
   */
  readonly drawnToken: bigint;
}

const lookAtInstallation = {
  name: "look_at_installation",
  text: `
select id, made_in is null as unmarked, made_in = database_identity(xmin) as here,
       case when current_setting('transaction_read_only') = 'off' then nextval('fencing_tokens') end::text as drawn_token
  from installation`,
};

interface LookRow {
  readonly id: string;
  readonly unmarked: boolean;
  readonly here: boolean;
  readonly drawn_token: string | null;
}

/** Reads the installation and draws a fencing token. Returns undefined if the database accepts no writes. */
export async function readInstallation(runner: Runner): Promise<InstallationLook | undefined> {
  const [row] = await runner.run<LookRow>(lookAtInstallation, []);
  if (row === undefined) throw new Error("the installation has no id");
  if (row.drawn_token === null) return undefined;
  const origin = row.unmarked ? "unmarked" : row.here ? "here" : "elsewhere";
  return { id: row.id, origin, drawnToken: BigInt(row.drawn_token) };
}

const markInstallation = {
  name: "mark_installation",
  text: `
update installation
   set made_in = database_identity(pg_current_xact_id()::xid)
 where made_in is null`,
};

/** Stores that the id was created in this database, unless an origin is stored already. */
export async function markOrigin(runner: Runner): Promise<void> {
  await runner.run(markInstallation, []);
}

const renewInstallationId = {
  name: "renew_installation",
  text: "select renew_installation($1::uuid, $2::bigint) as renewed",
};

/**
 * Replaces the installation's id, and raises the sequences of tokens and ids beyond every number that they
 * can have given out: fencing tokens by 2^42 above `tokenFloor`. Returns false, and changes nothing, if the
 * id is not `knownId` any more.
 */
export async function renewInstallation(
  runner: Runner,
  knownId: string,
  tokenFloor: bigint,
): Promise<boolean> {
  const [row] = await runner.run<{ renewed: boolean }>(renewInstallationId, [knownId, tokenFloor]);
  return row?.renewed === true;
}
