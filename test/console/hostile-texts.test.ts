import { expect, test } from "vitest";
import { describeInBrowser } from "../support/console/chromium.ts";
import {
  expectHarmless,
  HOSTILE_NAMESPACE,
  hostileText,
  plantHostileTexts,
} from "../support/console/hostile-texts.ts";
import { expectNoSidewaysScroll } from "../support/console/layout.ts";
import { openConsole, visit } from "../support/console/open-console.ts";
import { useConsole } from "../support/console/use-console.ts";

function recordPath(key: string): string {
  return `/records/${HOSTILE_NAMESPACE}/${encodeURIComponent(key)}`;
}

describeInBrowser("Texts of callers and administrators", () => {
  const { server, database } = useConsole();

  test("are shown as they are on every screen, and nothing of them runs", async () => {
    const { adminKey, completedKey, releasedKey, ambiguousKey } = await plantHostileTexts(server, database);
    const page = await openConsole(server, { key: adminKey, width: 320 });
    const shown: readonly (readonly [path: string, fields: readonly string[]])[] = [
      ["/records", ["completed", "held"]],
      [`/records?${new URLSearchParams({ owner: hostileText("heldowner") })}`, ["heldowner", "held"]],
      [recordPath(ambiguousKey), ["ambiguous", "ambiguousowner", "ambiguousstep"]],
      [recordPath(releasedKey), ["released", "release"]],
      [recordPath(completedKey), ["completed", "completedowner"]],
      ["/ambiguous", ["ambiguous", "ambiguousowner", "ambiguousstep"]],
      ["/api-keys", ["label"]],
      ["/audit", ["resolution"]],
    ];
    for (const [path, fields] of shown) {
      await visit(page, path);
      for (const field of fields) await expectHarmless(page, field);
      await expectNoSidewaysScroll(page);
    }
    await visit(page, recordPath(completedKey));
    expect(await page.content()).not.toContain("payload<img");
    // A button that was pressed says "Hide".
    const hidden = page.getByRole("button", { name: /^Show/ });
    for (let count = await hidden.count(); count > 0; count -= 1) await hidden.first().click();
    for (const field of ["payload", "name", "value"]) await expectHarmless(page, field);
  });
});
