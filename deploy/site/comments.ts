import { type AnyDesc, type DescFile, getOption } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";
import { field as fieldFacts } from "../../server/src/gen/onceward/v1/facts_pb.ts";

/**
 * Returns the comment above an element of a proto file as Markdown: the lines of a paragraph or of a point of a list are
 * joined. Of a field that people type, its help comes first. Empty if there is none.
 */
export function commentOf(desc: Exclude<AnyDesc, DescFile>): string {
  const help = desc.kind === "field" ? getOption(desc, fieldFacts).help : "";
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
