import type { Field, FieldKind, Overrides } from "../../domain/fields.ts";
import { POLICY_FIELDS, type PolicyHistory, type PolicyOverrides } from "../../domain/policy.ts";
import { BOUND_FIELDS } from "../../domain/policy-bounds.ts";
import { completeQuotas, QUOTA_FIELDS, type Quotas } from "../../domain/quotas.ts";

/** The Postgres type of each kind's columns. */
const COLUMN_TYPES = {
  seconds: "int",
  milliseconds: "int",
  integer: "int",
  bigint: "bigint",
  boolean: "boolean",
  enum: "text",
  text: "text",
} as const satisfies Record<FieldKind, string>;

/** A row with the columns of fields, as `pg` parses them. */
export type FieldRow = Readonly<Record<string, unknown>>;

/** The columns of values of which any may be unset. A null column is an unset value. */
export interface Columns<Values> {
  /** The columns' names, in the order of `types` and `parameters`. */
  readonly names: readonly string[];
  readonly types: readonly string[];
  /** The select list of a row for `parse`: times as milliseconds since the Unix epoch. */
  readonly selected: string;
  /** Returns one parameter for each column. */
  parameters(values: Values): readonly unknown[];
  /** Returns the values of a row that has all these columns. */
  parse(row: FieldRow): Values;
}

function columnsOf<Values>(fields: readonly Field<Values>[]): Columns<Overrides<Values>> {
  const names = fields.map(({ column }) => column);
  return {
    names,
    types: fields.map(({ kind }) => COLUMN_TYPES[kind]),
    selected: names.join(", "),
    parameters: (values) => fields.map(({ name }) => values[name] ?? null),
    parse(row) {
      const values = fields.map(({ name, column, kind }) => [name, parseColumn(kind, row[column])]);
      return Object.fromEntries(values);
    },
  };
}

function parseColumn(kind: FieldKind, value: unknown): unknown {
  if (value === null) return undefined;
  // `pg` returns a bigint as text.
  return kind === "bigint" ? Number(value) : value;
}

const POLICY_FIELD_COLUMNS = columnsOf(POLICY_FIELDS);

/** The columns of a policy in `tenants` and in `namespaces`, and those of what earlier policies leave behind. */
export const POLICY_COLUMNS: Columns<PolicyOverrides> = {
  names: [
    ...POLICY_FIELD_COLUMNS.names,
    ...["retention_lengthened_at", "retention_before_s", "late_keys_refused_since"],
  ],
  types: [...POLICY_FIELD_COLUMNS.types, ...["timestamptz", "int", "timestamptz"]],
  selected: `${POLICY_FIELD_COLUMNS.selected}, retention_before_s,
  extract(epoch from retention_lengthened_at) * 1000 as retention_lengthened_at,
  extract(epoch from late_keys_refused_since) * 1000 as late_keys_refused_since`,
  parameters: (policy) => [...POLICY_FIELD_COLUMNS.parameters(policy), ...historyParameters(policy)],
  parse: (row) => ({ ...POLICY_FIELD_COLUMNS.parse(row), history: parseHistory(row) }),
};

function historyParameters({ history }: PolicyOverrides): readonly unknown[] {
  const { lengthened, refusedSinceMs } = history ?? {};
  return [
    lengthened === undefined ? null : new Date(lengthened.atMs),
    lengthened?.beforeS ?? null,
    refusedSinceMs === undefined ? null : new Date(refusedSinceMs),
  ];
}

function parseHistory(row: FieldRow): PolicyHistory {
  const atMs = row.retention_lengthened_at as number | null;
  const beforeS = row.retention_before_s as number | null;
  const refusedSinceMs = row.late_keys_refused_since as number | null;
  return {
    lengthened: atMs === null || beforeS === null ? undefined : { atMs, beforeS },
    refusedSinceMs: refusedSinceMs ?? undefined,
  };
}

/** The columns of policy bounds in `tenants`. */
export const BOUND_COLUMNS = columnsOf(BOUND_FIELDS);
/** The columns of quotas in `tenants`. */
export const QUOTA_COLUMNS = columnsOf(QUOTA_FIELDS);

/** Returns the quotas of a row. */
export function parseQuotas(row: FieldRow): Quotas {
  return completeQuotas(QUOTA_COLUMNS.parse(row));
}

/** Returns a statement's parameters of these types, from `$first` on: `$2::int, $3::text`. */
export function placeholders(types: readonly string[], first: number): string {
  return types.map((type, index) => `$${first + index}::${type}`).join(", ");
}
