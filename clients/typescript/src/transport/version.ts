/** The version of this package. Not read from package.json: bundles don't have it. */
export const VERSION = "0.1.0";
