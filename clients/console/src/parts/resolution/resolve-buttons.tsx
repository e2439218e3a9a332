import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { type ReactNode, useState } from "react";
import styles from "./resolution.module.css";
import { RESOLUTIONS, type ResolutionKind, resolutionsOf } from "./resolution.ts";
import { ResolveDialog } from "./resolve-dialog.tsx";

type Ask = (kind: ResolutionKind, record: Record) => void;

interface ResolveButtonsProps {
  readonly record: Record;
  /** In a table: links without frames, which name their record for screen readers. */
  readonly look: "row" | "screen";
  readonly ask: Ask;
}

/** A button for each resolution that a record's state allows. `ask` is of `useResolveDialog`. */
export function ResolveButtons({ record, look, ask }: ResolveButtonsProps) {
  return (
    <div className={styles.buttons}>
      {resolutionsOf(record).map((kind) => (
        <button
          key={kind}
          type="button"
          data-look={look === "screen" && kind === "forget" ? "danger" : undefined}
          {...(look === "row" && {
            "data-look": "link",
            "aria-label": `${RESOLUTIONS[kind].answer} ${record.key}`,
          })}
          onClick={() => ask(kind, record)}
        >
          {RESOLUTIONS[kind].answer}
        </button>
      ))}
    </div>
  );
}

/**
 * Returns the function that opens the dialog of a resolution, and the dialog. It keeps the record as it was shown: a
 * refresh behind it changes neither what is decided about nor an error that is being read.
 *
 * @param resolved called after a change.
 */
export function useResolveDialog(resolved?: (kind: ResolutionKind) => void): {
  readonly ask: Ask;
  readonly dialog: ReactNode;
} {
  const [open, setOpen] = useState<{ readonly kind: ResolutionKind; readonly record: Record }>();
  return {
    ask: (kind, record) => setOpen({ kind, record }),
    dialog: open !== undefined && (
      <ResolveDialog {...open} close={() => setOpen(undefined)} resolved={() => resolved?.(open.kind)} />
    ),
  };
}
