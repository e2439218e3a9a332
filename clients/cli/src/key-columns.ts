import type { ApiKey } from "@onceward/client/admin";
import { formatMoment } from "./moments.ts";
import type { Column } from "./output.ts";

/** How API keys are listed for people, whosever they are. */
export const KEY_COLUMNS = {
  id: ["KEY", ({ id }) => id],
  label: ["LABEL", ({ label }) => label || "-"],
  created: ["CREATED", ({ createdAt }) => formatMoment(createdAt)],
  ends: ["ENDS", endOf],
} as const satisfies Readonly<Record<string, Column<ApiKey>>>;

function endOf({ revokedAt, expiresAt }: ApiKey): string {
  return revokedAt === undefined ? formatMoment(expiresAt) : `revoked ${formatMoment(revokedAt)}`;
}
