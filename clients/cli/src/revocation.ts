import type { ApiKey } from "@onceward/client/proto";
import { REVOKE_KEY } from "#words/changes";
import { KEY_COLUMNS } from "./columns.ts";
import { confirm, type YesOption } from "./confirm.ts";
import { roleName } from "./new-key.ts";
import { cellText } from "./output.ts";
import { collectPages, type PageRequest } from "./pages.ts";
import type { Session } from "./session.ts";
import { renderFacts } from "./table.ts";

/** Keys of a page that is searched. */
const PAGE_SIZE = 1000;

/** A page of API keys. */
interface KeyPage {
  readonly apiKeys: readonly ApiKey[];
  readonly nextPageToken: string;
}

/** Shows what an API key is for and when it was used, and asks for its id before it is revoked. */
export async function confirmRevocation(
  session: Session<unknown>,
  options: YesOption,
  id: string,
  list: (page: PageRequest) => Promise<KeyPage>,
): Promise<void> {
  const { items } = await collectPages(PAGE_SIZE, "apiKeys", async (page) => {
    const { apiKeys, nextPageToken } = await list(page);
    const found = apiKeys.filter((key) => key.id === id);
    // An id has one key: no page after it is read.
    return { apiKeys: found, nextPageToken: found.length > 0 ? "" : nextPageToken };
  });
  const effect = [...items.map(describeKey), REVOKE_KEY].join("");
  await confirm(session, options, { effect, question: `Revoke key ${id}?`, typed: id });
}

function describeKey(key: ApiKey): string {
  const { label, lastUsed, ends } = KEY_COLUMNS;
  return renderFacts([
    ["role", roleName(key.role)],
    ...[label, lastUsed, ends].map(
      ([heading, cell]) => [heading.toLowerCase(), cellText(cell(key), Date.now())] as const,
    ),
  ]);
}
