import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { type ReactNode, useState } from "react";
import common from "../../styles/common.module.css";
import { RESOLUTIONS, type ResolutionKind, resolutionsOf } from "./resolution.ts";
import { ResolveDialog } from "./resolve-dialog.tsx";

interface ResolveButtonsProps {
  /** The resolutions that are offered. */
  readonly kinds: readonly ResolutionKind[];
  readonly ask: (kind: ResolutionKind) => void;
}

/** A button for each resolution. */
export function ResolveButtons({ kinds, ask }: ResolveButtonsProps) {
  return (
    <div className={common.row}>
      {kinds.map((kind) => (
        <button
          key={kind}
          type="button"
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
 * Returns the buttons that resolve some records, and the dialog that they open.
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
  return {
    buttons: first !== undefined && (
      <ResolveButtons kinds={resolutionsOf(first)} ask={(kind) => setOpen({ kind, records })} />
    ),
    dialog: open !== undefined && (
      <ResolveDialog {...open} close={() => setOpen(undefined)} resolved={() => resolved?.(open.kind)} />
    ),
  };
}
