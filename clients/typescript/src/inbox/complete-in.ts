import { Buffer } from "node:buffer";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import type { Claim } from "../run/claim.ts";
import type { Codec } from "../run/codec.ts";
import type { Jsonify } from "../run/jsonify.ts";
import { decodeValue, encodeEffect } from "../run/result-codec.ts";
import type { Executor } from "./executor.ts";
import { ENTRY_ATTEMPTS, inSavepoint, notEntered } from "./transaction.ts";

/** The part of a claim that identifies it, which a completion needs. */
export type CompletedClaim = Pick<Claim, "namespace" | "key" | "fencingToken">;

/**
 * Runs the function and writes its value as the claim's completion, in the transaction that the caller began and will
 * commit: the effect's rows and the completion commit together. Call it inside `run`, which keeps the claim's lease
 * alive:
 *
 * ```ts
 * import { completeIn, postgresExecutor, startRelay } from "@onceward/client/inbox";
 *
 * const relay = startRelay({ onceward, database: postgresExecutor(sql) });
 *
 * const order = await onceward.run({ namespace: "orders", key, fingerprint: body }, (claim) =>
 *   sql.begin((tx) => completeIn(postgresExecutor(tx), claim, () => insertOrder(tx, body))),
 * );
 * ```
 *
 * - Return its value from the function passed to `run`: `run` then completes the claim at the service. If the process
 *   crashes between the commit and that, the relay completes it, so that a committed completion is never lost.
 * - The row's unique constraint holds even if the lease is lost. If an earlier attempt has committed and the service
 *   does not know yet, `completeIn` returns that attempt's value instead of running the function; so it does for a
 *   holder that stalled until another one had finished, and for a run that is not guarded. The rows are written once,
 *   also if leases end.
 * - With the policy HOLD, `acceptAmbiguous` is safe: the row says whether the effect happened.
 * - An error of the function is rethrown unchanged, and its writes are undone, even if the transaction commits.
 * - Put everything that must happen once inside the function, and commit after `completeIn`.
 * - All completions in one database must be of one tenant.
 *
 * @param codec the run's codec, if it has one.
 * @throws OncewardError RESULT_NOT_JSON, CODEC_FAILED, RESULT_TOO_LARGE (over 1 MiB): the writes are undone.
 * @throws the driver's error of a statement; outside a transaction, 25P01.
 */
export async function completeIn<T>(
  tx: Executor,
  claim: CompletedClaim,
  fn: () => T | Promise<T>,
  codec: Codec<T>,
): Promise<T>;
export async function completeIn<T>(
  tx: Executor,
  claim: CompletedClaim,
  fn: () => T | Promise<T>,
): Promise<Jsonify<T>>;
export async function completeIn(
  tx: Executor,
  claim: CompletedClaim,
  fn: () => unknown,
  codec?: Codec<unknown>,
): Promise<unknown> {
  return await inSavepoint(tx, async () => {
    const earlier = await enter(tx, claim);
    if (earlier !== undefined) return decodeValue(earlier, codec);
    const result = encodeEffect({ status: "fulfilled", value: await fn() }, codec);
    await write(tx, claim, result);
    return decodeValue(result, codec);
  });
}

/** Inserts the completion's row. Returns an earlier completion that is valid; undefined if the caller must write it. */
async function enter(tx: Executor, { namespace, key, fencingToken }: CompletedClaim) {
  for (let attempt = 1; attempt <= ENTRY_ATTEMPTS; attempt++) {
    const name = [namespace, key];
    // A newer token takes the row over. If the completion was delivered, the service has forgotten it since (else it
    // would
    // have replayed it), and this is a new operation. If not, it stays valid, and is delivered with the newer token.
    const [entered] = await tx(
      `insert into onceward_completions as c (namespace, key, fencing_token)
       values ($1::text, $2::text, $3::text::bigint)
       on conflict (namespace, key) do update set
         fencing_token = excluded.fencing_token,
         result = case when c.delivered_at is null then c.result end,
         written_at = now(),
         attempts = 0,
         next_attempt_at = now(),
         delivered_at = null,
         undeliverable = null
       where c.fencing_token < excluded.fencing_token
       returning encode(result, 'base64') as result`,
      [...name, String(fencingToken)],
    );
    if (entered !== undefined) return typeof entered.result === "string" ? parse(entered.result) : undefined;
    // Written with this token, by a commit whose reply was lost, or with a newer token.
    const [written] = await tx(
      `select encode(result, 'base64') as result
         from onceward_completions
        where namespace = $1::text and key = $2::text`,
      name,
    );
    if (typeof written?.result === "string") return parse(written.result);
    // The row was swept between the two statements.
  }
  throw notEntered();
}

async function write(tx: Executor, { namespace, key }: CompletedClaim, result: ResultInit): Promise<void> {
  const bytes = toBinary(ResultSchema, create(ResultSchema, result));
  await tx(
    `update onceward_completions set result = decode($3::text, 'base64')
      where namespace = $1::text and key = $2::text`,
    [namespace, key, Buffer.from(bytes).toString("base64")],
  );
}

type ResultInit = MessageInitShape<typeof ResultSchema>;

function parse(base64: string): ResultInit {
  return fromBinary(ResultSchema, Buffer.from(base64, "base64"));
}
