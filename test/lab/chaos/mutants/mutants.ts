import type { Replacement } from "../../../support/processes/sources-copy.ts";

/**
 * A defect of the service, as replacements of its source text. It is applied to a copy, never to the shipped
 * source.
 */
export interface Mutant {
  readonly name: string;
  /** The wrong behaviour. */
  readonly defect: string;
  /** Of files below `server/src`. */
  readonly replacements: readonly Replacement[];
  /** Faults without which the defect does not show; most need none. */
  readonly faults: readonly string[];
  /** The load under which the defect shows; undefined: the usual one. */
  readonly load?: "late";
}

const CLAIM = "records/claim/claim-statements.ts";
const CLAIMABLE = `((\${LIFE_ENDED}) and excluded.state <> \${STATE.forgotten})
     or (r.expires_at > \${LATEST}
         and (r.fingerprint is null or excluded.fingerprint is null or r.fingerprint = excluded.fingerprint)
         and (r.state = \${STATE.released}
              or (r.state = \${STATE.inProgress}
                  and r.lease_expires_at <= excluded.claimed_at
                  and (not \${isHeld("excluded.claimed_at", "$16")} or excluded.accepts_ambiguous))))`;

/** The defects that the checker has to catch, every time. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: "no-lease-predicate",
    defect: "a claim is taken over while its lease runs",
    replacements: [
      { file: CLAIM, from: "and r.lease_expires_at <= excluded.claimed_at\n", to: "\n" },
      {
        file: "records/record.ts",
        from: `    case "inProgress":
      // The caller's own claim`,
        to: `    case "inProgress":
      return { kind: "contended" };
      // The caller's own claim`,
      },
    ],
    faults: [],
  },
  {
    name: "no-token-check",
    defect: "a superseded token completes",
    replacements: [
      {
        file: "records/complete.ts",
        from: "{OWN_CLAIM}\n  returning",
        to: '{OWN_CLAIM.replace("and r.fencing_token = i.fencing_token", "")}\n  returning',
      },
      {
        file: "records/complete.ts",
        from: "applied ? record",
        to: `applied ? record : record?.phase.kind === "completed"
        ? { kind: "completed", completedAtMs: record.phase.completedAtMs, expiresAtMs: record.expiresAtMs,
            alreadyCompleted: false, settles: false, copy: undefined }`,
      },
    ],
    faults: [],
  },
  {
    name: "read-then-take",
    defect: "a take-over is decided by an earlier read",
    replacements: [
      { file: CLAIM, from: `  where ${CLAIMABLE}`, to: "" },
      // As long as a round trip between the read and the take-over.
      {
        file: CLAIM,
        from: "    from input i\n  on conflict (tenant_id, namespace, key) do update set",
        to: "    from input i, pg_sleep(0.003)\n  on conflict (tenant_id, namespace, key) do update set",
      },
    ],
    faults: [],
  },
  {
    name: "reclaims-without-end",
    defect: "an expired lease is taken over long after the record's first claim",
    replacements: [
      {
        file: "records/engine/record-sql.ts",
        from: "(r.reclaim_within_s is null\n          or ",
        to: "(r.reclaim_within_s is null\n          or false and ",
      },
      {
        file: "records/engine/record-row.ts",
        from: "if (!holds) return",
        to: "if (!holds || reclaim_within_s !== null) return",
      },
    ],
    faults: [],
  },
  {
    name: "begin-not-marked",
    defect: "a claim whose effect has begun is taken over as if it had not",
    replacements: [{ file: "records/extend-lease.ts", from: " and not i.begins", to: "" }],
    faults: [],
  },
  {
    name: "cache-key-without-tenant",
    defect: "a copy is found by every tenant that asks for the same key",
    replacements: [
      {
        file: "records/replay/replay-cache.ts",
        from: "{ scope }: CacheEpoch)",
        to: '_: CacheEpoch, scope = "")',
      },
    ],
    faults: [],
  },
  {
    name: "hint-overwrites-completed",
    defect: "a cached IN_PROGRESS is answered after the key's completion",
    replacements: [
      {
        file: "records/claim/claim.ts",
        from: "      const completion = epoch && replayCache",
        to: `      const hint = hints.get(recordName(command.id));
      if (hint !== undefined && hint.untilMs > performance.now()) return hint.outcome;
      const completion = epoch && replayCache`,
      },
      {
        file: "records/claim/claim.ts",
        from: "    replayCache.countAnswer(id, ",
        to: `    if (outcome.kind === "inProgress") {
      hints.set(recordName(id), { outcome, untilMs: performance.now() + outcome.leaseRemainingMs });
    }
    replayCache.countAnswer(id, `,
      },
      {
        file: "records/claim/claim.ts",
        from: `  type RecordId,
} from "../record.ts";`,
        to: `  type RecordId,
  recordName,
} from "../record.ts";
const hints = new Map<string, { readonly outcome: ClaimOutcome; readonly untilMs: number }>();`,
      },
    ],
    faults: [],
  },
  {
    name: "late-fill-after-forget",
    defect: "a copy that is written late is found although its record was forgotten",
    replacements: [
      {
        file: "database/tenants/tenants.ts",
        from: "cacheScope({ installationId, tenantUid, generation })",
        to: "cacheScope({ installationId, tenantUid, generation: generation * 0 })",
      },
    ],
    faults: [],
  },
  {
    name: "servers-clock",
    defect: "leases follow the clock of the replica that answers",
    replacements: [
      {
        file: CLAIM,
        from: "function newRow(",
        to: `function newRow(source: RowSource, state: string | number): string {
  const replicas = \`to_timestamp($\${source === OF_ONE ? 15 : 16}::float8 / 1000)\`;
  return rowOf(source, state).replaceAll("now()", replicas);
}
function rowOf(`,
      },
      {
        file: CLAIM,
        from: "    command.marksBegin,\n    tokenFloor,\n",
        to: "    command.marksBegin,\n    tokenFloor,\n    Date.now(),\n",
      },
      {
        file: CLAIM,
        from: "    float8Array(commands.map((command) => command.acceptedUntilMs)),\n",
        to: "    float8Array(commands.map((command) => command.acceptedUntilMs)),\n    Date.now(),\n",
      },
      // A take-over has a last parameter already: the same time in its place.
      {
        file: CLAIM,
        from: "return [...claimArrays(commands, tokenFloor), latestMs ?? null];",
        to: "return claimArrays(commands, tokenFloor);",
      },
    ],
    faults: [],
  },
  {
    name: "joined-with-delimiter",
    defect: "a namespace and a key are joined with a character that both may hold",
    replacements: [
      {
        file: "records/record.ts",
        from: "id.namespace.length}:",
        to: '""}',
      },
      { file: "records/record.ts", from: "{id.namespace}$", to: "{id.namespace}.$" },
    ],
    faults: [],
  },
  {
    name: "sweep-ignores-retention",
    defect: "the sweep deletes records before their retention ends",
    replacements: [
      {
        file: "records/sweep.ts",
        from: `         where r.sweep_at <= \${nowBy("$2")}\n         order by r.sweep_at\n         limit $1::int + 1) due\``,
        to: "         where r.claimed_at <= now() - interval '3 seconds'\n         order by r.sweep_at\n         limit $1::int + 1) due`",
      },
      {
        file: "records/sweep.ts",
        from: `r.expires_at <= \${nowBy("$4")} -`,
        to: "coalesce($4::float8, 0) is not null and interval '0' <",
      },
      {
        file: "records/sweep.ts",
        from: `r.expires_at <= \${nowBy("$3")} -`,
        to: "coalesce($3::float8, 0) is not null and interval '0' <",
      },
      {
        file: "records/sweep.ts",
        from: `and r.expires_at > \${nowBy("$2")} -`,
        to: "and false and interval '0' <",
      },
    ],
    faults: [],
  },
  {
    name: "sweep-follows-moved-clock",
    defect: "the sweep deletes records whose retention has ended only by a clock that was set",
    replacements: [
      {
        file: "records/sweeper.ts",
        from: "      databaseClock.latestMs(),\n",
        to: "      undefined,\n",
      },
    ],
    faults: ["postgres-clock-80h"],
  },
  {
    name: "late-keys-begin-lives",
    defect: "a claim statement does not look at the age of its key",
    replacements: [
      {
        file: CLAIM,
        from: "{IS_YOUNG}\n  on conflict",
        to: '{"true"}\n  on conflict',
      },
    ],
    faults: [],
    load: "late",
  },
  {
    name: "batch-out-of-order",
    defect: "two items of a batch get each other's answers",
    replacements: [
      {
        file: "records/batch/batch.ts",
        from: "return create(BatchResponseSchema, { items: replies });",
        to: `if (replies.length > 1) replies.push(...replies.splice(0, 1));
    return create(BatchResponseSchema, { items: replies });`,
      },
    ],
    faults: [],
  },
  {
    name: "no-fingerprint-on-hit",
    defect: "a cached copy is replayed without comparing the fingerprint",
    replacements: [
      {
        file: "records/claim/claim.ts",
        from: "return completion && answerFromCompletion(completion, command);",
        to: "return completion && answerFromCompletion(completion, { ...command, fingerprint: undefined });",
      },
    ],
    faults: [],
  },
  {
    name: "asynchronous-commit",
    defect: "a commit is acknowledged before it is written, and Postgres crashes",
    replacements: [
      {
        file: "database/pool.ts",
        from: "const PLANNER_SETTINGS = {\n",
        to: 'const PLANNER_SETTINGS = {\n  synchronous_commit: "off",\n',
      },
    ],
    faults: ["postgres-kill"],
  },
];
