import type { Statement } from "../../core/store/pool.ts";
import type { ShardStatement } from "./shard-statement.ts";

/** A statement that asks Citus' coordinator to pass another one on to the node of its shard. */
export interface PassedStatement extends Statement {
  /** The text of the other statement: the last parameter, after the parameters of that statement. */
  readonly passedText: string;
}

/** A parameter and its type, as statements write them: `$3::text[]`. */
const PARAMETER = /\$(\d+)::(\w+(?:\[\])?)/g;

/**
 * Returns the statement that passes `statement` on, with its `count` parameters.
 *
 * Citus finds the node by the key in the first argument of `onceward_run_on_shard`, and neither plans nor commits the
 * statement itself. The function takes all parameters as texts, because one function serves all statements.
 *
 * @throws Error if the statement does not name the types of its parameters and columns.
 */
export function passedStatement({ name, text, columns }: ShardStatement, count: number): PassedStatement {
  if (columns === undefined) throw new Error(`${name} does not name the types of its columns`);
  const types = typesOfParameters(text, count);
  const key = types[2] === "text[]" ? "($3::text[])[1]" : "$3::text";
  const texts = types.map((type, index) => `$${index + 1}::${type}::text`);
  return {
    name,
    preparedName: `${name}_passed_on`,
    text: `
select *
  from onceward_run_on_shard(${key}, $${count + 1}::text, array[${texts.join(", ")}])
    as r (${columns})`,
    passedText: text.replace(/\$(\d+)/g, (_, number) => `$1[${number}]`),
  };
}

/** Returns the type of each parameter of a statement. */
function typesOfParameters(text: string, count: number): readonly string[] {
  const types = new Map([...text.matchAll(PARAMETER)].map(([, number, type]) => [Number(number), type]));
  return Array.from({ length: count }, (_, index) => {
    const type = types.get(index + 1);
    if (type === undefined) throw new Error(`the statement does not name the type of parameter ${index + 1}`);
    return type;
  });
}
