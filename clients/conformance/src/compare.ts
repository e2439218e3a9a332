import { isDeepStrictEqual } from "node:util";

/** The members with which an expectation allows more than one value. */
const MATCHERS: Readonly<Record<string, (actual: unknown, argument: unknown) => boolean>> = {
  /** Any value. */
  $present: (actual) => actual !== undefined,
  /** No value. */
  $absent: (actual) => actual === undefined,
  /** Either no value, or this one: where a client need not report it. */
  $optional: (actual, argument) => actual === undefined || isDeepStrictEqual(actual, argument),
  /** A number between two others, both included. */
  $between: (actual, range) => {
    const [min = 0, max = 0] = range as number[];
    return typeof actual === "number" && actual >= min && actual <= max;
  },
  /** A text that a regular expression matches. */
  $matches: (actual, pattern) => typeof actual === "string" && new RegExp(`${pattern}`, "u").test(actual),
  /** Exactly this value: without further members. */
  $exactly: isDeepStrictEqual,
};

/** Returns where the actual value differs from the expected one, a line each. Further members of objects are allowed. */
export function differences(expected: unknown, actual: unknown, path = ""): readonly string[] {
  const where = path === "" ? "the outcome" : path;
  if (isObject(expected)) {
    const [[matcher = "", argument] = []] = Object.entries(expected);
    const matches = MATCHERS[matcher];
    if (matches !== undefined)
      return matches(actual, argument) ? [] : [`${where} is ${show(actual)}, not ${show(expected)}`];
    if (!isObject(actual)) return [`${where} is ${show(actual)}, not ${show(expected)}`];
    return Object.entries(expected).flatMap(([name, value]) =>
      differences(value, actual[name], path === "" ? name : `${path}.${name}`),
    );
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length)
      return [`${where} is ${show(actual)}, not ${show(expected)}`];
    return expected.flatMap((element, index) => differences(element, actual[index], `${path}[${index}]`));
  }
  return isDeepStrictEqual(expected, actual) ? [] : [`${where} is ${show(actual)}, not ${show(expected)}`];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function show(value: unknown): string {
  return value === undefined ? "missing" : JSON.stringify(value);
}
