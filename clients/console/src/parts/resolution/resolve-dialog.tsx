import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { typedName } from "@onceward/words/changes";
import { type ReactNode, useState } from "react";
import { formatNoun } from "../../format/quantity.ts";
import { useShortcut } from "../../shell/use-shortcut.ts";
import common from "../../styles/common.module.css";
import { ConfirmDialog } from "../confirm-dialog.tsx";
import { useNotice } from "../notice.tsx";
import { UserText } from "../user-text.tsx";
import {
  EMPTY_RESULT,
  isOfHttpGuard,
  isResolvable,
  RESOLUTIONS,
  type ResolutionKind,
  resolutionMessage,
  resolutionsOf,
} from "./resolution.ts";
import { useResolveEach } from "./resolve-each.ts";
import { ResultFields } from "./result-fields.tsx";

interface ResolveDialogProps {
  /** As they were shown: a refresh behind the dialog changes nothing of what is decided. */
  readonly records: readonly Record[];
  readonly kind: ResolutionKind;
  readonly close: () => void;
  /** Called after the change, before `close`. */
  readonly resolved?: () => void;
}

/** Resolves one or several records, for a reason that the audit keeps. Those that could not be resolved stay in the dialog. */
export function ResolveDialog({ records, kind, close, resolved }: ResolveDialogProps) {
  const [left, setLeft] = useState(records);
  const [draft, setDraft] = useState(EMPTY_RESULT);
  const { done, resolveEach } = useResolveEach(setLeft);
  const notify = useNotice();
  const { answer, meaning } = RESOLUTIONS[kind];
  const [only, ...others] = left;
  const count = formatNoun(left.length, "record", "records");
  const isOne = only !== undefined && others.length === 0;
  const title = isOne ? answer : `${answer}: ${count}`;

  async function act(reason: string): Promise<void> {
    const resolution = resolutionMessage(kind, draft);
    await resolveEach(
      left.map((record) => ({ record, resolution })),
      reason,
    );
    notify(`${answer}: ${count}. Every replica follows within 10 s.`);
    resolved?.();
  }

  return (
    <ConfirmDialog
      title={title}
      action={title}
      look={kind === "forget" ? "danger" : "plain"}
      reason="required"
      isValid={isResolvable(kind, draft)}
      {...(kind === "forget" && { typed: isOne ? typedName(only) : String(left.length) })}
      act={act}
      close={close}
    >
      {isOne && (
        <p>
          <UserText>{only.key}</UserText> in {only.namespace}
        </p>
      )}
      <p>{meaning}</p>
      {!isOne && done > 0 && (
        <p role="status">
          {done} of {left.length}
        </p>
      )}
      {kind === "complete" && (
        <ResultFields draft={draft} change={setDraft} isHttp={records.every(isOfHttpGuard)} />
      )}
    </ConfirmDialog>
  );
}

interface ResolveButtonsProps {
  /** The resolutions that are offered. */
  readonly kinds: readonly ResolutionKind[];
  readonly ask: (kind: ResolutionKind) => void;
  /** Whether nothing is chosen yet. */
  readonly isDisabled?: boolean;
}

/** A button for each resolution. */
export function ResolveButtons({ kinds, ask, isDisabled }: ResolveButtonsProps) {
  return (
    <div className={common.row}>
      {kinds.map((kind) => (
        <button
          key={kind}
          type="button"
          disabled={isDisabled}
          data-look={kind === "forget" ? "rare" : "plain"}
          onClick={() => ask(kind)}
        >
          {RESOLUTIONS[kind].answer}
        </button>
      ))}
    </div>
  );
}

/**
 * Returns the buttons that resolve some records, and the dialog that they open. The keys `y` and `n` open it, too.
 *
 * @param resolved called after a change.
 */
export function useResolution(
  records: readonly Record[],
  resolved?: (kind: ResolutionKind) => void,
): { readonly buttons: ReactNode; readonly dialog: ReactNode } {
  const [open, setOpen] = useState<{
    readonly kind: ResolutionKind;
    readonly records: readonly Record[];
  }>();
  const [first] = records;
  const kinds = first === undefined ? [] : resolutionsOf(first);
  const ask = (kind: ResolutionKind) => setOpen({ kind, records });
  useShortcut("y", RESOLUTIONS.complete.answer, () => kinds.includes("complete") && ask("complete"));
  useShortcut("n", RESOLUTIONS.release.answer, () => kinds.includes("release") && ask("release"));
  return {
    buttons: first !== undefined && <ResolveButtons kinds={kinds} ask={ask} />,
    dialog: open !== undefined && (
      <ResolveDialog {...open} close={() => setOpen(undefined)} resolved={() => resolved?.(open.kind)} />
    ),
  };
}
