import { protoCamelCase } from "@bufbuild/protobuf/reflect";

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Others}`
  ? `${First}${Capitalize<CamelCase<Others>>}`
  : Name;

/** Returns counts, named as the contract names fields of a message, as these fields. */
export function countFields<Name extends string>(counts: Readonly<Record<Name, number>>) {
  const fields = Object.entries<number>(counts).map(([name, count]) => [protoCamelCase(name), BigInt(count)]);
  return Object.fromEntries(fields) as Readonly<Record<CamelCase<Name>, bigint>>;
}
