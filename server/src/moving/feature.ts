import type { Feature } from "../replica/feature.ts";
import { exportTenant } from "./export-tenant.ts";
import { importTenant } from "./import-tenant.ts";

/** Moves a tenant to another installation. */
export const moving: Feature = {
  commands: [
    {
      name: "export-tenant",
      synopsis: "--tenant NAME",
      summary: "refuse a tenant's calls and write its data to standard output, to move it",
      run: exportTenant,
    },
    {
      name: "import-tenant",
      synopsis: "[--without-api-keys]",
      summary: "read a tenant from standard input into this installation, and serve it",
      run: importTenant,
    },
  ],
};
