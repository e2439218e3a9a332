import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

/** The folder of the Helm chart. */
export const CHART = fileURLToPath(new URL("../../../deploy/helm/onceward/", import.meta.url));

/** A value of the chart that has a comment in `values.yaml`. */
export interface ChartValue {
  /** Its keys, from the outermost. */
  readonly path: readonly string[];
  readonly description: string;
  /** Undefined for a map whose members have comments of their own. */
  readonly fallback: unknown;
}

const COMMENT = /^ *# ?(.*)$/;
const KEY = /^( *)([\w.]+):/;

/**
 * Returns the values of `values.yaml` that have a comment, in their order.
 *
 * @throws Error if a value has neither a comment nor a parent with one.
 */
export function readChartValues(yaml = readFileSync(`${CHART}values.yaml`, "utf8")): readonly ChartValue[] {
  const defaults: unknown = parse(yaml);
  const found: ChartValue[] = [];
  const path: string[] = [];
  let comment: string[] = [];
  for (const line of yaml.split("\n")) {
    const [, text] = COMMENT.exec(line) ?? [];
    if (text !== undefined) {
      comment.push(text);
      continue;
    }
    const [, indent = "", key] = KEY.exec(line) ?? [];
    if (key !== undefined) {
      path.splice(indent.length / 2, path.length, key);
      if (comment.length > 0) {
        found.push({ path: [...path], description: comment.join(" "), fallback: valueAt(defaults, path) });
      }
    }
    comment = [];
  }
  for (const leaf of leavesOf(defaults)) {
    if (!found.some(({ path }) => isWithin(leaf, path))) {
      throw new Error(`values.yaml: ${leaf.join(".")} has no description in a comment`);
    }
  }
  return found.map((value) => {
    const isParent = found.some((other) => other !== value && isWithin(other.path, value.path));
    return isParent ? { ...value, fallback: undefined } : value;
  });
}

/** Returns the value at a path of a document; undefined if there is none. */
export function valueAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (inner as Record<string, unknown> | undefined)?.[key],
    document,
  );
}

function isWithin(path: readonly string[], outer: readonly string[]): boolean {
  return outer.every((key, index) => path[index] === key);
}

function leavesOf(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
  const members = isMap ? Object.entries(value) : [];
  if (members.length === 0) return [path];
  return members.flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}
