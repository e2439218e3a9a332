import {
  create,
  type DescMessage,
  isFieldSet,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Duration, FieldMask } from "@bufbuild/protobuf/wkt";
import { type Field, type Overrides, patternOf } from "../domain/fields.ts";
import { duration, type Violations } from "../domain/violations.ts";

/** A field, its path in requests, and the pattern that a text of it matches. */
type MessageField<Values> = Field<Values> & { readonly path: string; readonly pattern: RegExp };

/**
 * Returns the reader and writer of a policy, of policy bounds or of quotas.
 *
 * @param prefix the beginning of each path, such as "policy.".
 */
export function createFieldMessages<Schema extends DescMessage, Values>(
  schema: Schema,
  described: readonly Field<Values>[],
  prefix: string,
) {
  type Message = MessageShape<Schema>;
  const fields = described.map((field): MessageField<Values> => {
    const { descriptor, facts } = field;
    return { ...field, path: prefix + descriptor.name, pattern: patternOf(facts) };
  });

  function fieldsOf(message: Message | undefined) {
    if (message === undefined) return [];
    return fields.filter(({ descriptor }) => isFieldSet<Schema>(message, descriptor));
  }

  return {
    /** The path of every field in an update mask: "policy.key_retention". */
    paths: fields.map(({ path }) => path),
    /** Returns the paths of those fields that a message sets. */
    pathsOf: (message: Message | undefined): readonly string[] => fieldsOf(message).map(({ path }) => path),
    /** Returns the fields that a message sets. Adds a violation for every field that is malformed or out of its range. */
    parse(message: Message | undefined, violations: Violations): Overrides<Values> {
      const sent = message as Readonly<Record<string, unknown>> | undefined;
      const values = fieldsOf(message).map((field) => [
        field.name,
        parseValue(field, sent?.[field.descriptor.localName], violations),
      ]);
      return Object.fromEntries(values);
    },
    /** Returns the fields whose path is in the mask from `asked`, and the others from `was`. */
    merge(was: Overrides<Values>, asked: Overrides<Values>, mask: ReadonlySet<string>): Overrides<Values> {
      const changed = fields.filter(({ path }) => mask.has(path)).map(({ name }) => [name, asked[name]]);
      return { ...was, ...Object.fromEntries(changed) };
    },
    /** Returns a message with the fields that are defined. */
    write(values: Overrides<Values>): Message {
      const written = fields
        .filter(({ name }) => values[name] !== undefined)
        .map((field) => [field.descriptor.localName, writeValue(field, values[field.name])]);
      return create(schema, Object.fromEntries(written) as MessageInitShape<Schema>);
    },
  };
}

/** Longer than every bound, so that a violation names the bound and not this range. */
const ANY_DURATION_MS = { min: 0, max: 10 * 365 * 86_400_000 };

function parseValue<Values>(
  { kind, path, descriptor, range, pattern, facts }: MessageField<Values>,
  value: unknown,
  violations: Violations,
): unknown {
  switch (kind) {
    case "seconds":
    case "milliseconds": {
      const unitMs = kind === "seconds" ? 1000 : 1;
      const { min, max } = range ? { min: range.min * unitMs, max: range.max * unitMs } : ANY_DURATION_MS;
      const valueMs = violations.durationMs(path, value as Duration, { minMs: min, maxMs: max });
      // Rounded up: a key is never forgotten before the time that was asked for.
      return valueMs === undefined ? undefined : Math.ceil(valueMs / unitMs);
    }
    case "integer":
    case "bigint": {
      const number = value as number | bigint;
      if (range === undefined || (number >= range.min && number <= range.max)) return Number(number);
      violations.add(path, `must be between ${range.min} and ${range.max}`);
      return undefined;
    }
    case "boolean":
      return value;
    case "text":
      violations.text(path, String(value), { minBytes: range?.min ?? 0, maxBytes: range?.max ?? 0 });
      if (!pattern.test(String(value))) violations.add(path, facts.rule);
      return value;
    case "enum": {
      const known = descriptor.enum?.values.find(({ number }) => number === value);
      if (known !== undefined) return known.localName;
      const names = descriptor.enum?.values.filter(({ number }) => number !== 0).map(({ name }) => name);
      violations.add(path, `must be ${names?.join(" or ")}`);
      return undefined;
    }
  }
}

function writeValue<Values>({ kind, descriptor }: Field<Values>, value: unknown): unknown {
  switch (kind) {
    case "seconds":
      return duration(Number(value) * 1000);
    case "milliseconds":
      return duration(Number(value));
    case "bigint":
      return BigInt(value as number);
    case "integer":
    case "boolean":
    case "text":
      return value;
    case "enum":
      return descriptor.enum?.values.find(({ localName }) => localName === value)?.number;
  }
}

/**
 * Returns the paths of the fields that an update changes. AIP-134: an empty mask means the fields that the request sets; "*"
 * means all; a message's name means all of its fields. Adds a violation for every other path.
 */
export function maskedFields(
  mask: FieldMask | undefined,
  { paths, set }: { readonly paths: readonly string[]; readonly set: readonly string[] },
  violations: Violations,
): ReadonlySet<string> {
  const asked = mask?.paths ?? [];
  if (asked.length === 0) return new Set(set);
  const masked = new Set<string>();
  for (const path of asked) {
    const named = paths.filter((field) => path === "*" || field === path || field.startsWith(`${path}.`));
    if (named.length === 0) {
      violations.add("update_mask", `must name fields that can be set: ${paths.join(", ")}`);
    }
    for (const field of named) masked.add(field);
  }
  return masked;
}
