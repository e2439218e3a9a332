/** The programs that people run to measure, to search and to try, by name. */
export const LAB: Readonly<Record<string, { readonly does: string; readonly run: () => Promise<unknown> }>> =
  {
    late: {
      does: "chaos with keys that come again after their end",
      run: () => import("./chaos/late/main.ts"),
    },
    mutants: {
      does: "chaos finds builds with one defect each",
      run: () => import("./chaos/mutants/main.ts"),
    },
    outcomes: {
      does: "workers that are killed at any moment, and what becomes of their operations",
      run: () => import("./outcomes/main.ts"),
    },
    fuzz: { does: "broken frames to every port", run: () => import("./fuzz/main.ts") },
    model: { does: "the protocol's model, simulated and searched", run: () => import("./model/main.ts") },
    promises: { does: "each documented limit has a test", run: () => import("./promises/main.ts") },
    insight: { does: "how often advice about retention is true", run: () => import("./insight/main.ts") },
    keys: { does: "how often suspicions of keys are true", run: () => import("./insight/keys-main.ts") },
    sql: { does: "the final text of each SQL statement, or of one", run: () => import("./sql.ts") },
    traffic: { does: "weeks of traffic for the server of npm start", run: () => import("./traffic/main.ts") },
    way: {
      does: "the files that a granted claim enters",
      run: () => import("../tools/generate/write-way.ts"),
    },
  };

if (import.meta.main) {
  const [name = ""] = process.argv.splice(2, 1);
  const program = Object.hasOwn(LAB, name) ? LAB[name] : undefined;
  if (program === undefined) {
    const names = Object.entries(LAB).map(([each, { does }]) => `  ${each.padEnd(10)}${does}`);
    console.error(`npm run lab -- NAME [OPTIONS]; NAME --help lists the options.\n${names.join("\n")}`);
    process.exit(2);
  }
  await program.run();
}
