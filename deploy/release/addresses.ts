/** Where the parts of a release can be had. */
export interface Addresses {
  /** The repository's page. */
  readonly repository: string;
  /** The images without a tag, by their targets in the Dockerfile. */
  readonly images: { readonly server: string; readonly cli: string };
  /** The registry's folder that has the Helm chart. */
  readonly charts: string;
  /** The path of the Go module. */
  readonly goModule: string;
}

/**
 * Returns the addresses that follow from the one of the repository, `repository` of the root's package.json: images and charts are in the
 * registry of the forge, under the same owner.
 *
 * @throws Error if it is not an address such as `https://github.com/OWNER/NAME`.
 */
export function addressesOf(repository: unknown): Addresses {
  const [, owner, name] = /^https:\/\/github\.com\/([\w-]+)\/([\w.-]+)$/.exec(String(repository)) ?? [];
  if (owner === undefined || name === undefined)
    throw new Error(`package.json: repository is not https://github.com/OWNER/NAME: ${repository}`);
  return {
    repository: `https://github.com/${owner}/${name}`,
    images: { server: `ghcr.io/${owner}/onceward-server`, cli: `ghcr.io/${owner}/onceward` },
    charts: `ghcr.io/${owner}/charts`,
    goModule: `github.com/${owner}/${name}/clients/go`,
  };
}
