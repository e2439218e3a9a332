import { KeyDefect, type KeyEvidence, type KeyQuality, type KeySuspicion } from "@onceward/client/proto";
import { describeInsufficientData } from "#words/insufficient-data";
import { defectTitle, measureWords, suspicionsOf } from "#words/key-quality-words";
import { type Column, enumName } from "./output.ts";
import { formatMoment, Moment } from "./times.ts";

/** The columns of a list of namespaces. */
export const QUALITY_COLUMNS: readonly Column<KeyQuality>[] = [
  ["NAMESPACE", ({ namespace }) => namespace],
  ["CLAIMS", ({ claims }) => claims.toLocaleString("en")],
  ["OBSERVED SINCE", ({ observedSince }) => new Moment(observedSince), "wide"],
  [
    "SUSPECTED",
    (quality) =>
      suspicionsOf(quality)
        .ofKeys.map(({ defect }) => defectName(defect))
        .join(", ") || "nothing",
    "text",
  ],
];

/** Returns what is known about the keys of a namespace. */
export function describeQuality(quality: KeyQuality): string {
  const { namespace, claims, observedSince, undecided } = quality;
  const { ofKeys, late, random } = suspicionsOf(quality);
  const since = observedSince === undefined ? "no claim yet" : `since ${formatMoment(observedSince)}`;
  return [
    `Keys in ${namespace}: ${claims.toLocaleString("en")} ${claims === 1n ? "claim" : "claims"}, ${since}. Intervals hold with 95 %.\n`,
    ...ofKeys.map((each) => `Suspected: ${describeDefect(each)}`),
    ...(ofKeys.length === 0 ? ["Nothing is suspected.\n"] : []),
    ...(random ? [describeDefect(random)] : []),
    ...(late ? [`${defectTitle(late.defect)}: ${late.advice}\n  onceward advice ${namespace}\n`] : []),
    ...undecided.map(({ defect, insufficient }) =>
      insufficient === undefined
        ? ""
        : `Not known yet: ${defectTitle(defect)} (${describeInsufficientData(insufficient)}).\n`,
    ),
  ].join("\n");
}

function describeDefect({ defect, evidence, examples, advice }: KeySuspicion): string {
  return [
    defectTitle(defect),
    ...evidence.map((each) => `  ${describeEvidence(each)}`),
    ...(examples.length === 0 ? [] : [`  for example: ${examples.map(({ key }) => key).join(", ")}`]),
    `  ${advice}\n`,
  ].join("\n");
}

function describeEvidence({ measure, count, of, shareLow, shareHigh }: KeyEvidence): string {
  const number = (value: number) => Math.round(value).toLocaleString("en");
  return `${measureWords(measure)}: ${number(count)} of ${number(of)} (${percent(shareLow)} – ${percent(shareHigh)})`;
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}

/** Returns the contract's name of a defect as words, such as "time in key"; its number if it is a newer service's. */
function defectName(defect: KeyDefect): string {
  return enumName(KeyDefect, defect).replaceAll("_", " ");
}
