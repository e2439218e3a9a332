import { writeFileSync } from "node:fs";
import { type DescEnum, getOption } from "@bufbuild/protobuf";
import { reason as reasonFacts } from "../../../../clients/typescript/src/gen/onceward/v1/facts_pb.ts";
import { commentOf } from "../../../../deploy/site/comments.ts";
import { PROTO_FILES, remedyOf } from "../openapi/proto-files.ts";

/** Writes `clients/typescript/guides/errors.md` from `errors.proto`; part of `npm run generate`. */
const PAGE = new URL("../../../../clients/typescript/guides/errors.md", import.meta.url);

writeFileSync(
  PAGE,
  `# Errors and remedies

<!-- npm run generate writes this page from proto/onceward/v1/errors.proto -->

Every error of the client is an \`OncewardError\`. Branch on its \`reason\`; \`message\` is for people. An error of your own function is
never wrapped. Where a retry helps, the error has \`retryDelayMs\`.

## Reasons of the service

${sections("ErrorReason")}
## Reasons of the client

${sections("ClientReason")}`,
);

function sections(name: string): string {
  const reasons = PROTO_FILES.getEnum(`onceward.v1.${name}`);
  if (reasons === undefined) throw new Error(`errors.proto has no ${name}`);
  return sectionsOf(reasons).join("\n");
}

function sectionsOf({ values }: DescEnum): readonly string[] {
  return values
    .filter(({ number }) => number !== 0)
    .map((value) => {
      const { code } = getOption(value, reasonFacts);
      const comment = commentOf(value).replace(/ Has a google\.rpc\.RetryInfo(?: and QuotaFailure)?\./, "");
      const meaning = `${code === "" ? "" : `${code}. `}${comment}`;
      return `### \`${value.localName}\`\n\n${inTypeScript(`${meaning} **Do**: ${remedyOf(value)}`)}\n`;
    });
}

/** Spells the names of options and fields as TypeScript does: `{retry_delay_ms}`. */
function inTypeScript(text: string): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  );
}
