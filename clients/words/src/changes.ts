/** A change of a tenant's state, as it is asked for. */
export interface TenantChange {
  /** The verb of its button and its question. */
  readonly action: string;
  /** What follows. */
  readonly effect: string;
  readonly done: string;
}

/** The changes of a tenant's state. */
export const TENANT_CHANGES = {
  suspend: {
    action: "Suspend",
    effect:
      "Within 10 s every call of the tenant is refused (TENANT_SUSPENDED), until it is resumed. Its records stay.",
    done: "Suspended",
  },
  resume: {
    action: "Resume",
    effect: "Within 10 s the tenant's calls are answered again.",
    done: "Resumed",
  },
  delete: {
    action: "Delete",
    effect:
      "The tenant's calls are refused permanently: its API keys stop working, and all its records are deleted. A duplicate that comes later, to another tenant, runs again. This can't be undone.",
    done: "Deleted",
  },
} as const satisfies Readonly<Record<string, TenantChange>>;

/** The change of a tenant that has moved away. */
export const REDIRECT_TENANT: TenantChange = {
  action: "Redirect",
  effect:
    "Clients that still call here get the address within 2 s, and follow. Give it only after the import there has succeeded.",
  done: "Redirected",
};

/** The change that takes a redirection back. */
export const STOP_REDIRECTING: TenantChange = {
  action: "Take back the redirection of",
  effect:
    "Within 2 s refusals no longer name the address. Clients that have followed it stay there while it answers.",
  done: "Took back the redirection of",
};

/** What follows if a moving tenant is resumed. */
export const RESUME_MOVING =
  "The tenant is moving. Resume it only if no other installation has imported it: both would grant the same keys.";

/** What follows if an API key is revoked. */
export const REVOKE_KEY = "Calls with it are refused from then on. It can't be undone.";

/** What follows if a namespace's policy is deleted, and if its records are forgotten with it. */
export const DELETE_POLICY =
  "The namespace then follows the tenant's policy. Its values can't be brought back.";
export const FORGET_RECORDS =
  "Forget the records, as if their keys had never been claimed: a duplicate of any of them does its effect a second time.";

/** What follows if a job is cancelled. */
export const CANCEL_JOB =
  "The job changes no further record. The changed records stay changed; a cancelled job cannot be continued.";

/** Returns what has to be typed before a record is forgotten: its key, or its namespace if the key is hard to type. */
export function typedName({ namespace, key }: { readonly namespace: string; readonly key: string }): string {
  return /^[!-~]{1,64}$/.test(key) ? key : namespace;
}
