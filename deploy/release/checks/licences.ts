import type { Component } from "../sbom.ts";

/** Licences that a dependency may have: each lets others use, change and sell the work without publishing theirs. */
const ALLOWED = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "Unlicense",
]);

/** Returns the packages whose licence is unknown or not allowed. */
export function licenceProblems(packages: Iterable<Component>): readonly string[] {
  return [...packages]
    .filter(({ license }) => license === undefined || !isAllowed(license))
    .map(({ name, version, license }) => `${name} ${version} has the licence ${license ?? "(none)"}`);
}

/** Whether an SPDX expression of `AND` and `OR` without inner parentheses is allowed. */
function isAllowed(expression: string): boolean {
  const choices = expression.replace(/^\(|\)$/g, "").split(" OR ");
  return choices.some((choice) => choice.split(" AND ").every((license) => ALLOWED.has(license)));
}
