import { useSession } from "../session/session.ts";
import { SelectField, TextField } from "./field.tsx";

interface NamespaceFieldProps {
  /** From `useNamespace`. */
  readonly value: string;
}

/**
 * The namespace in a FilterBar, as the parameter `namespace`. A session that is limited to namespaces chooses one of
 * them, because it may not list those of the whole tenant.
 */
export function NamespaceField({ value }: NamespaceFieldProps) {
  const { namespaces } = useSession();
  if (namespaces.length === 0) {
    return (
      <TextField label="Namespace" name="namespace" placeholder="all" defaultValue={value} maxLength={63} />
    );
  }
  return (
    <SelectField
      label="Namespace"
      name="namespace"
      defaultValue={value}
      options={Object.fromEntries(namespaces.map((name) => [name, name]))}
    />
  );
}

/** Returns the namespace to list: the filter's, or the first that a limited session has; "" for all. */
export function useNamespace(filter: string): string {
  const { namespaces } = useSession();
  return filter === "" ? (namespaces[0] ?? "") : filter;
}
