import type { Runner } from "./pool.ts";

/** What one look at the database says of the installation. */
export interface InstallationLook {
  /** Names this installation among all that share a Redis; random, and another one after each restore or promotion. */
  readonly id: string;
  /** Whether the id was made in this very database: `unmarked` where no replica has served it yet. */
  readonly origin: "here" | "elsewhere" | "unmarked";
  /** A fencing token, drawn to be given to no claim: higher than all before it, unless the database went back. */
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

/** Looks at the installation; draws one fencing token. Undefined: the database takes no writes, and says nothing certain. */
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

/** Writes down that the id was made in this database, unless that is written down already. */
export async function markOrigin(runner: Runner): Promise<void> {
  await runner.run(markInstallation, []);
}

const renewInstallationId = {
  name: "renew_installation",
  text: "select renew_installation($1::uuid, $2::bigint) as renewed",
};

/**
 * Gives the installation another id, and raises the sequences of tokens and ids beyond all that they can have given out:
 * fencing tokens by 2^42, beyond `tokenFloor`. False: its id was not `knownId` any more, and nothing was changed.
 */
export async function renewInstallation(
  runner: Runner,
  knownId: string,
  tokenFloor: bigint,
): Promise<boolean> {
  const [row] = await runner.run<{ renewed: boolean }>(renewInstallationId, [knownId, tokenFloor]);
  return row?.renewed === true;
}
