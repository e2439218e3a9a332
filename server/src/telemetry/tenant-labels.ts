/** A tenant with a label of its own. */
export interface LabelledTenant {
  readonly id: number;
  readonly name: string;
}

/** Tenants with a label of their own. Further tenants share `other`, so that the label stays bounded. */
export const MAX_TENANT_LABELS = 100;
const OTHER = "other";

/**
 * The values of the label `tenant`: the names of the tenants that were created first, as the database lists
 * them, so that every replica uses the same labels and their metrics can be added up.
 */
export class TenantLabels {
  #names: ReadonlyMap<number, string> | undefined;
  /** Tenants that were asked for and not listed yet: they may have been created since. */
  #unknown = new Set<number>();
  /** Tenants that the last list did not contain although it has room: they were deleted. */
  #deleted: ReadonlySet<number> = new Set();

  /** Returns a tenant's label; undefined until the next list decides it. */
  labelOf(tenantId: number): string | undefined {
    const name = this.#names?.get(tenantId);
    if (name !== undefined) return name;
    if (this.#deleted.has(tenantId) || (this.#names?.size ?? 0) >= MAX_TENANT_LABELS) return OTHER;
    this.#unknown.add(tenantId);
    return undefined;
  }

  /** Returns the tenants that have a label of their own. */
  tenants(): LabelledTenant[] {
    return [...(this.#names ?? [])].map(([id, name]) => ({ id, name }));
  }

  /** Replaces the list. `read` returns the first MAX_TENANT_LABELS tenants. */
  async refresh(read: () => Promise<readonly LabelledTenant[]>): Promise<void> {
    const asked = this.#unknown;
    this.#unknown = new Set();
    try {
      this.#names = new Map((await read()).map(({ id, name }) => [id, name]));
    } catch (error) {
      this.#unknown = this.#unknown.union(asked);
      throw error;
    }
    this.#deleted = asked;
  }
}
