import packageJson from "../package.json" with { type: "json" };

/** Of the server, as in its package. */
export const VERSION: string = packageJson.version;
