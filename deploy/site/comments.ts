import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";
import { typedField } from "../../clients/typescript/src/decode/field-facts.ts";

/**
 * Returns the comment above an element of a proto file as Markdown: the lines of a paragraph or of a point of a list are
 * joined. Of a field that people type, what the contract says about it precedes. Empty if there is none.
 */
export function commentOf(desc: Exclude<AnyDesc, DescFile>): string {
  const help = desc.kind === "field" ? typedField(desc).help : "";
  const sentence = help && `${help.charAt(0).toUpperCase()}${help.slice(1)}.`;
  return [sentence, linesOf(desc)].filter((text) => text !== "").join(" ");
}

function linesOf(desc: Exclude<AnyDesc, DescFile>): string {
  const lines = (getComments(desc).leading ?? "").split("\n").map((line) => line.trim());
  return lines
    .join("\n")
    .trim()
    .replace(/([^\n])\n(?=[^\n-])/g, "$1 ");
}

/** Returns the first sentence of a text, without its full stop. */
export function firstSentence(text: string): string {
  const [sentence = ""] = text.split(/\.(?:\s|$)/, 1);
  return sentence.replaceAll("\n", " ");
}
