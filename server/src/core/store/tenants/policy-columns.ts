import type { Field, FieldKind, FieldTable, Overrides } from "../../domain/fields.ts";
import { POLICY_FIELDS, type Policy } from "../../domain/policy.ts";
import { BOUND_FIELDS, type PolicyBounds } from "../../domain/policy-bounds.ts";
import { completeQuotas, QUOTA_FIELDS, type Quotas } from "../../domain/quotas.ts";

/** The Postgres type of each kind's columns. */
const COLUMN_TYPES = {
  seconds: "int",
  milliseconds: "int",
  integer: "int",
  bigint: "bigint",
  boolean: "boolean",
  enum: "text",
} as const satisfies Record<FieldKind, string>;

/** A row with the columns of a table of fields, as `pg` parses them. */
export type FieldRow = Readonly<Record<string, unknown>>;

/** The columns of a table of fields. A null column is an unset field. */
export interface Columns<Values> {
  /** The columns' names, in the order of `types` and `parameters`. */
  readonly names: readonly string[];
  readonly types: readonly string[];
  /** Returns one parameter for each column. */
  parameters(values: Overrides<Values>): readonly unknown[];
  /** Returns the fields of a row that has all these columns. */
  parse(row: FieldRow): Overrides<Values>;
}

function columnsOf<Values>(table: FieldTable<Values>): Columns<Values> {
  const fields = Object.entries(table) as [keyof Values, Field][];
  return {
    names: fields.map(([, { column }]) => column),
    types: fields.map(([, { kind }]) => COLUMN_TYPES[kind]),
    parameters: (values) => fields.map(([name]) => values[name] ?? null),
    parse(row) {
      const values = fields.map(([name, { column, kind }]) => [name, parseColumn(kind, row[column])]);
      return Object.fromEntries(values);
    },
  };
}

function parseColumn(kind: FieldKind, value: unknown): unknown {
  if (value === null) return undefined;
  // `pg` returns a bigint as text.
  return kind === "bigint" ? Number(value) : value;
}

/** The columns of a policy in `tenants` and in `namespaces`. */
export const POLICY_COLUMNS = columnsOf<Policy>(POLICY_FIELDS);
/** The columns of policy bounds in `tenants`. */
export const BOUND_COLUMNS = columnsOf<PolicyBounds>(BOUND_FIELDS);
/** The columns of quotas in `tenants`. */
export const QUOTA_COLUMNS = columnsOf<Quotas>(QUOTA_FIELDS);

/** Returns the quotas of a row. */
export function parseQuotas(row: FieldRow): Quotas {
  return completeQuotas(QUOTA_COLUMNS.parse(row));
}

/** Returns a statement's parameters of these types, from `$first` on: `$2::int, $3::text`. */
export function placeholders(types: readonly string[], first: number): string {
  return types.map((type, index) => `$${first + index}::${type}`).join(", ");
}
