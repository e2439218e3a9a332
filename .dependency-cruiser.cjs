/**
 * Which folder may import from which: `npm run check` fails on anything else. server/README.md says what the folders hold.
 * Tests are left out: they may reach for anything.
 */

/** The server's folders, the lowest first: a folder imports only from folders in rows above its own, and from itself. */
const SERVER_LAYERS = [
  ["domain", "gen"],
  ["telemetry"],
  ["store"],
  ["auth", "background", "cache"],
  ["admission", "config"],
  ["calls", "messages"],
  ["claims", "admin"],
  ["edge"],
  ["commands"],
];

/** The folders of the client, the lowest first. Adapters and entry points stand on all of them. */
const CLIENT_LAYERS = [["gen"], ["wire"], ["errors"], ["transport"], ["run"]];

module.exports = {
  forbidden: [
    {
      name: "no-import-cycle",
      comment: "Files that import each other can't be read, or changed, one at a time.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-folder-cycle",
      scope: "folder",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    ...upwardImports("server", SERVER_LAYERS, "server/src"),
    ...upwardImports("client", CLIENT_LAYERS, "clients/typescript/src"),
    {
      name: "domain-is-pure",
      severity: "error",
      from: { path: "^server/src/domain/" },
      to: { pathNot: "^server/src/domain/", dependencyTypesNot: ["core"] },
    },
    {
      name: "pg-stops-at-the-store",
      severity: "error",
      from: { pathNot: "^server/src/store/" },
      to: { path: "^(node_modules/)?(pg|@types/pg)(/|$)" },
    },
    {
      name: "store-knows-no-messages",
      severity: "error",
      from: { path: "^server/src/store/" },
      to: { path: "^server/src/gen/" },
    },
    {
      name: "server-and-clients-are-apart",
      severity: "error",
      from: { path: "^clients/" },
      to: { path: "^server/" },
    },
  ],
  options: {
    parser: "swc",
    // Types count as values do: who has to read a file, reads its types.
    tsPreCompilationDeps: true,
    exclude: { path: ["\\.test\\.ts$"] },
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { extensions: [".ts", ".js"], conditionNames: ["@onceward/source", "types", "import", "node"] },
  },
};

/** One rule for each row: nothing in it imports from its neighbours, or from rows after it. */
function upwardImports(name, layers, root) {
  return layers.flatMap((row, index) =>
    row.map((folder) => {
      const others = [...row.filter((each) => each !== folder), ...layers.slice(index + 1).flat()];
      return {
        name: `${name}-layers`,
        comment: `${folder} stands below: it must not import from ${others.join(", ")}`,
        severity: "error",
        from: { path: `^${root}/${folder}/` },
        to: { path: others.length === 0 ? "^$" : `^${root}/(${others.join("|")})/` },
      };
    }),
  );
}
