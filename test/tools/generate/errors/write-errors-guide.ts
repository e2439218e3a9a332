import { readFileSync, writeFileSync } from "node:fs";
import type { CatalogueReason } from "@onceward/client";
import { CATALOGUE } from "../../../../server/src/core/domain/refusal.ts";
import { OWN_REASONS, REMEDIES } from "./remedies.ts";

/** Writes `clients/typescript/guides/errors.md` from `errors.proto` and the remedies; part of `npm run generate`. */
const PROTO = new URL("../../../../proto/onceward/v1/errors.proto", import.meta.url);
const PAGE = new URL("../../../../clients/typescript/guides/errors.md", import.meta.url);

/** A value of the enum with the comment above it. */
const VALUE = /((?: {2}\/\/[^\n]*\n)+) {2}ERROR_REASON_(\w+) = \d+;/g;

const INTRODUCTION = `# Errors and remedies

<!-- npm run generate writes this page from proto/onceward/v1/errors.proto and test/tools/generate/errors/remedies.ts -->

Every error of the client is an \`OncewardError\`. Branch on its \`reason\`; \`message\` is for people. An error of your own function is
never wrapped: \`run\` rejects with the same error.

## Reasons of the service

`;
const OWN = `
## Reasons of the client

`;

const rows = [...readFileSync(PROTO, "utf8").matchAll(VALUE)]
  .filter(([, , reason]) => reason !== "UNSPECIFIED")
  .map(([, comment = "", reason = ""]) => {
    if (!(reason in CATALOGUE)) throw new Error(`refusal.ts has no ${reason}`);
    return row(
      reason,
      comment
        .replaceAll(/^ {2}\/\/ ?/gm, "")
        .trim()
        .replaceAll("\n", " "),
      remedyOf(reason),
    );
  });
const ownRows = Object.entries(OWN_REASONS).map(([reason, { meaning, remedy }]) =>
  row(reason, meaning, remedy),
);
const head = ["| reason | meaning | remedy |", "| --- | --- | --- |"];
writeFileSync(
  PAGE,
  `${INTRODUCTION}${[...head, ...rows].join("\n")}\n${OWN}${[...head, ...ownRows].join("\n")}\n`,
);

/** @throws Error for a reason without a remedy. */
function remedyOf(reason: string): string {
  const remedy = REMEDIES[reason as CatalogueReason];
  if (remedy === undefined) throw new Error(`write a remedy for ${reason} in remedies.ts`);
  return remedy;
}

function row(...cells: readonly string[]): string {
  const [reason = "", ...others] = cells.map((cell) => cell.replaceAll("|", "\\|"));
  return `| \`${reason}\` | ${others.join(" | ")} |`;
}
