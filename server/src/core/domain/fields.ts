/**
 * One field of a policy, of policy bounds or of quotas. Columns, messages, update masks and checks of ranges are derived from
 * tables of these: see POLICY_FIELDS, BOUND_FIELDS and QUOTA_FIELDS.
 */
export interface Field<Kind extends FieldKind = FieldKind> {
  /** The name in `policy.proto`. */
  readonly proto: string;
  /** The column of `tenants`; the columns of a policy are in `namespaces`, too. */
  readonly column: string;
  readonly kind: Kind;
  /** The values that the contract allows, in the field's unit, both ends included. Undefined: checked elsewhere. */
  readonly range?: { readonly min: number; readonly max: number };
}

/**
 * How a field is sent and stored. `seconds` and `milliseconds` are durations in messages and whole numbers elsewhere; a
 * `bigint` column may hold more than 32 bits; the domain names an `enum` as protoc-gen-es does, such as "HOLD"; an empty `text` is
 * unset.
 */
export type FieldKind = "seconds" | "milliseconds" | "integer" | "bigint" | "boolean" | "enum" | "text";

type KindOf<Value> = Value extends boolean
  ? "boolean"
  : Value extends string
    ? "enum" | "text"
    : Exclude<FieldKind, "boolean" | "enum" | "text">;

/** A table with one field for each property of `Values`, of a kind that fits its type. */
export type FieldTable<Values> = {
  readonly [Name in keyof Values]-?: Field<KindOf<NonNullable<Values[Name]>>>;
};

/** Values of which any may be unset. */
export type Overrides<Values> = { readonly [Name in keyof Values]?: Values[Name] | undefined };
