import type { BoundStatement } from "../pool.ts";
import type { BoundShardStatement } from "./shard-statements.ts";

/** A parameter and its type, as statements write them: `$3::text[]`. */
const PARAMETER = /\$(\d+)::(\w+(?:\[\])?)/g;

/**
 * Returns a statement that asks Citus' coordinator to pass a statement on to the node of its shard.
 *
 * Citus finds the node by the key in the first argument of `onceward_run_on_shard`, and neither plans nor commits the
 * statement itself. The function takes all parameters as texts, because one function serves all statements.
 */
export function passedOn({ statement, parameters }: BoundShardStatement): Omit<BoundStatement, "operations"> {
  const { name, text, columns } = statement;
  if (columns === undefined) throw new Error(`${name} does not say the types of its columns`);
  const types = typesOfParameters(text, parameters.length);
  const key = types[2] === "text[]" ? "($3::text[])[1]" : "$3::text";
  const texts = types.map((type, index) => `$${index + 1}::${type}::text`);
  return {
    statement: {
      name,
      preparedName: `${name}_passed_on`,
      text: `
select *
  from onceward_run_on_shard(${key}, $${types.length + 1}::text, array[${texts.join(", ")}])
    as r (${columns})`,
    },
    parameters: [...parameters, text.replace(/\$(\d+)/g, (_, number) => `$1[${number}]`)],
  };
}

/** Returns the type of each parameter of a statement. @throws if the statement does not name one. */
function typesOfParameters(text: string, count: number): readonly string[] {
  const types = new Map([...text.matchAll(PARAMETER)].map(([, number, type]) => [Number(number), type]));
  return Array.from({ length: count }, (_, index) => {
    const type = types.get(index + 1);
    if (type === undefined) throw new Error(`the statement does not name the type of parameter ${index + 1}`);
    return type;
  });
}
