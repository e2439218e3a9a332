import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import {
  type Answers,
  MAX_ANSWERS_BYTES,
  type Matched,
  matchAnswers,
  readAnswers,
} from "@onceward/words/answers";
import { useState } from "react";
import { formatNoun, formatSize } from "../../format/quantity.ts";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { TextField } from "../../parts/field.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { EMPTY_RESULT, isResolvable, resolutionMessage } from "../../parts/resolution/resolution.ts";
import { useResolveEach } from "../../parts/resolution/resolve-each.ts";
import { ResultFields } from "../../parts/resolution/result-fields.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { readFailure } from "../../session/failure.ts";
import type { ReadRecords } from "./filters.ts";

/** A file that was read, and what it does. */
interface Preview extends Answers {
  readonly matched: Matched;
  readonly isCut: boolean;
}

/** Problems that are shown; a file with more is probably another one. */
const SHOWN = 10;

/** Imports a file of keys with the answers whether their effects happened, after a preview of what it does. */
export function AnswersDialog({
  readAll,
  close,
}: {
  readonly readAll: () => Promise<ReadRecords>;
  readonly close: () => void;
}) {
  const [preview, setPreview] = useState<Preview>();
  const [problem, setProblem] = useState<string>();
  const [result, setResult] = useState(EMPTY_RESULT);
  const { done, resolveEach } = useResolveEach(keep);
  const notify = useNotice();
  const answered = preview?.matched.answered ?? [];
  const happened = answered.filter((each) => each.happened).length;

  async function read(file: File | undefined): Promise<void> {
    setPreview(undefined);
    setProblem(undefined);
    if (file === undefined) return;
    if (file.size > MAX_ANSWERS_BYTES)
      return setProblem(`At most ${formatSize(MAX_ANSWERS_BYTES)}; this file has ${formatSize(file.size)}.`);
    try {
      const answers = readAnswers(await file.text());
      const { records, isCut } = await readAll();
      setPreview({ ...answers, matched: matchAnswers(answers.answers, records), isCut });
    } catch (error) {
      setProblem(readFailure(error).message);
    }
  }

  /** Shows the answers of records that are left. */
  function keep(left: readonly Record[]): void {
    const remaining = answered.filter(({ record }) => left.includes(record));
    setPreview(preview && { ...preview, matched: { settled: [], unclear: [], answered: remaining } });
  }

  async function act(reason: string): Promise<void> {
    const decisions = answered.map((each) => ({
      record: each.record,
      resolution: resolutionMessage(
        each.happened ? "complete" : "release",
        each.result === "" ? result : { ...result, contentType: EMPTY_RESULT.contentType, text: each.result },
      ),
    }));
    await resolveEach(decisions, reason);
    notify(`Resolved ${formatNoun(answered.length, "record", "records")} by the file.`);
  }

  return (
    <ConfirmDialog
      title="Import answers"
      action={`Resolve ${formatNoun(answered.length, "record", "records")}`}
      reason="required"
      isValid={
        answered.length > 0 &&
        preview?.problems.length === 0 &&
        (happened === 0 || isResolvable("complete", result))
      }
      act={act}
      close={close}
    >
      <TextField
        label="File"
        type="file"
        accept=".csv,text/csv"
        problem={problem}
        help={`The exported file, with yes or no in the column "happened?", and JSON in "result" where results differ. Lines without an answer stay ambiguous.`}
        onChange={({ target }) => void read(target.files?.[0])}
      />
      <div role="status">
        {preview !== undefined && <PreviewText preview={preview} />}
        {done > 0 && `${done} of ${answered.length}`}
      </div>
      {happened > 0 && (
        <>
          <h3>Result of the {happened} that happened</h3>
          <ResultFields draft={result} change={setResult} />
        </>
      )}
    </ConfirmDialog>
  );
}

function PreviewText({ preview: { matched, open, problems, isCut } }: { readonly preview: Preview }) {
  const { answered, settled, unclear } = matched;
  if (problems.length > 0) {
    const more = problems.length - SHOWN;
    return (
      <>
        <p>Nothing can be imported from this file:</p>
        <ul>
          {problems.slice(0, SHOWN).map((each) => (
            <li key={each}>{each}</li>
          ))}
          {more > 0 && <li>and {more} more.</li>}
        </ul>
      </>
    );
  }
  const recordsWith = (happened: boolean) =>
    answered.filter((each) => each.happened === happened).map(({ record }) => record);
  const groups: readonly (readonly [readonly Pick<Record, "key" | "namespace">[], string])[] = [
    [recordsWith(true), "happened: completed"],
    [recordsWith(false), "did not happen: released, and the next claim performs them"],
    [settled, `skipped: not ${isCut ? "among the oldest 10,000 ambiguous records" : "ambiguous"}`],
    [unclear, "skipped: in several namespaces, add the column namespace"],
    [open, "skipped: without an answer"],
  ];
  return groups.map(([records, what]) => (
    <details key={what} hidden={records.length === 0}>
      <summary>
        {records.length} {what}
      </summary>
      <ul>
        {records.map(({ key, namespace }) => (
          <li key={`${namespace}/${key}`}>
            <UserText>{key}</UserText> {namespace && `in ${namespace}`}
          </li>
        ))}
      </ul>
    </details>
  ));
}
