import {
  KeyDefect,
  type KeyEvidence,
  type KeyExample,
  type KeyQuality,
  type KeySuspicion,
  type UndecidedKeyDefect,
} from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { describeInsufficientData } from "@onceward/words/insufficient-data";
import { defectTitle, measureWords, suspicionsOf } from "@onceward/words/key-quality-words";
import { formatHex } from "@onceward/words/payload";
import { recordHref } from "@onceward/words/record-address";
import { Link } from "wouter";
import { formatCount, formatNoun, formatShare, inSentence } from "../../format/quantity.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import styles from "../../styles/charts.module.css";
import common from "../../styles/common.module.css";

/** A namespace with suspicions: each with its advice, its evidence and examples. */
export function NamespaceQuality({ quality }: { readonly quality: KeyQuality }) {
  const { namespace, claims, observedSince, undecided } = quality;
  return (
    <section aria-label={namespace}>
      <h2>
        <Link href={`/namespaces/${namespace}`}>{namespace}</Link>
      </h2>
      <p className={common.quiet}>
        {formatNoun(claims, "claim", "claims")} since <Time at={observedSince} />
      </p>
      {suspicionsOf(quality).shown.map((suspicion) => (
        <Suspicion key={suspicion.defect} namespace={namespace} suspicion={suspicion} />
      ))}
      {undecided.length > 0 && (
        <>
          <h3>Too early to say</h3>
          <Undecided undecided={undecided} />
        </>
      )}
    </section>
  );
}

interface SuspicionProps {
  readonly namespace: string;
  readonly suspicion: KeySuspicion;
}

function Suspicion({ namespace, suspicion: { defect, evidence, examples, advice } }: SuspicionProps) {
  return (
    <article>
      <h3>
        {defectTitle(defect)}{" "}
        {defect !== KeyDefect.RANDOM_ORDER && <StateMark tone="attention" word="Suspected" />}
      </h3>
      <p>{advice}</p>
      {evidence.slice(0, 1).map(({ measure, count, of }) => (
        <p key={measure}>
          <b>
            {formatCount(Math.round(count))} of {formatCount(Math.round(of))}
          </b>{" "}
          ({formatShare(shareOf(count, of))}): {inSentence(measureWords(measure))}.
        </p>
      ))}
      <details>
        <summary>All counts, with intervals</summary>
        <DataTable
          caption={`What was counted in ${namespace}: ${defectTitle(defect).toLowerCase()}`}
          columns={[
            ["What was counted", ({ measure }) => measureWords(measure)],
            ["Count", ({ count }) => formatCount(Math.round(count)), "number"],
            ["Of", ({ of }) => formatCount(Math.round(of)), "number"],
            ["Share", ({ count, of }) => formatShare(shareOf(count, of)), "number"],
            [
              "Between (95 % sure)",
              ({ shareLow, shareHigh }) => `${formatShare(shareLow)} to ${formatShare(shareHigh)}`,
              "number",
            ],
            ["0 to 100 %", (row) => <IntervalBar evidence={row} />],
          ]}
          rows={evidence}
          rowKey={({ measure }) => measure}
        />
      </details>
      {examples.length > 0 && <Examples namespace={namespace} defect={defect} examples={examples} />}
    </article>
  );
}

const BAR_WIDTH = 120;

/** The columns beside it say the same in numbers. */
function IntervalBar({ evidence: { count, of, shareLow, shareHigh } }: { readonly evidence: KeyEvidence }) {
  const { from, width, at } = placeInterval(shareLow, shareOf(count, of), shareHigh, BAR_WIDTH);
  return (
    <svg
      className={styles.share}
      width={BAR_WIDTH}
      height="12"
      viewBox={`-1 0 ${BAR_WIDTH + 2} 12`}
      aria-hidden="true"
    >
      <path d={`M0 6H${BAR_WIDTH}M0 2V10M${BAR_WIDTH} 2V10`} />
      <rect x={from} y="3" width={width} height="6" />
      <path d={`M${at} 1V11`} />
    </svg>
  );
}

interface ExamplesProps {
  readonly namespace: string;
  readonly defect: KeyDefect;
  readonly examples: readonly KeyExample[];
}

function Examples({ namespace, defect, examples }: ExamplesProps) {
  return (
    <DataTable
      caption={`Records of ${namespace} that show: ${defectTitle(defect).toLowerCase()}`}
      columns={[
        ["Key", ({ key }) => <UserText>{key}</UserText>],
        ["First claimed", ({ firstClaimedAt }) => <Time at={firstClaimedAt} />],
        [
          "Fingerprint",
          ({ fingerprint }) =>
            fingerprint.length === 0 ? (
              "none"
            ) : (
              <SameFingerprint namespace={namespace} fingerprint={fingerprint} />
            ),
        ],
      ]}
      rows={examples}
      rowKey={({ key }) => key}
      href={({ key }) => recordHref(namespace, key)}
    />
  );
}

interface SameFingerprintProps {
  readonly namespace: string;
  readonly fingerprint: Uint8Array;
}

function SameFingerprint({ namespace, fingerprint }: SameFingerprintProps) {
  const hex = formatHex(fingerprint);
  return (
    <Link href={`/records?${new URLSearchParams({ namespace, fingerprint: hex })}`}>
      Keys with <code>{hex.slice(0, 8)}…</code>
    </Link>
  );
}

function shareOf(count: number, of: number): number {
  return of === 0 ? 0 : count / of;
}

/** Lists the defects that can be neither suspected nor ruled out, and what is missing. */
export function Undecided({ undecided }: { readonly undecided: readonly UndecidedKeyDefect[] }) {
  if (undecided.length === 0) return "Everything checked";
  return (
    <ul className={common.plain}>
      {undecided.map(({ defect, insufficient }) => (
        <li key={defect}>
          {defectTitle(defect)}:{" "}
          <span className={common.quiet}>{insufficient && describeInsufficientData(insufficient)}</span>
        </li>
      ))}
    </ul>
  );
}

/** Returns where an interval of shares from 0 to 1 and its estimate are in a picture of a given width, in its units. It is never narrower than a unit, so that it is seen. */
export function placeInterval(low: number, share: number, high: number, width: number) {
  const place = (value: number) => Math.min(1, Math.max(0, value)) * width;
  const wide = Math.max(1, place(high) - place(low));
  return { from: Math.min(place(low), width - wide), width: wide, at: place(share) };
}
