/**
 * A row whose columns have the names and types of a value's fields, with null in place of undefined. Statements name such
 * columns `as "createdAtMs"`, so that nothing has to be written twice.
 */
export type RowOf<Value> = {
  readonly [Name in keyof Value]: undefined extends Value[Name]
    ? Exclude<Value[Name], undefined> | null
    : Value[Name];
};

/** Returns the value of a row: undefined in place of null. */
export function fromRow<Value>(row: RowOf<Value>): Value {
  return Object.fromEntries(
    Object.entries(row).map(([name, column]) => [name, column ?? undefined]),
  ) as Value;
}
