import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type FormEvent, type ReactNode, useEffect, useId, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { fixMoment, parseMoment, writeMoment } from "../format/moment.ts";
import { useSession } from "../session/session.ts";
import common from "../styles/common.module.css";
import { SelectField, TextField } from "./field.tsx";
import { useNamespaceNames } from "./namespace-names.ts";
import { hereWith, useQueryText, withParameters } from "./pages.ts";

interface FilterBarProps {
  readonly children: ReactNode;
  /** Fields that few people need: folded while the address has no filter. */
  readonly more?: ReactNode;
}

const NARROW = "(max-width: 44rem)";

/**
 * A form whose fields' names and values become the address's query, so that a filtered list can be shared. Fields take
 * `defaultValue` from `useFilters()`. A narrow window has room for them or for the list: they are folded while the address has no filter.
 */
export function FilterBar({ more, children }: FilterBarProps) {
  const search = useQueryText();
  const [, navigate] = useLocation();
  const [isNarrow, setNarrow] = useState(() => window.matchMedia(NARROW).matches);
  useEffect(() => {
    const width = window.matchMedia(NARROW);
    const follow = () => setNarrow(width.matches);
    width.addEventListener("change", follow);
    return () => width.removeEventListener("change", follow);
  }, []);

  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    const changes: Record<string, string> = {};
    for (const [name, value] of new FormData(event.currentTarget)) {
      if (typeof value === "string") changes[name] = value.trim();
    }
    const query = withParameters(search, changes);
    navigate(hereWith(query === "" ? "" : `?${query}`));
  }

  const form = (
    <search>
      {/* The key builds the fields again when the address changes by Back or a link. */}
      <form key={search} className={common.fields} onSubmit={submit}>
        {children}
        {more !== undefined && (
          <details open={search !== ""} className={common.fold}>
            <summary>More filters</summary>
            <div className={common.fields}>{more}</div>
          </details>
        )}
        <div className={common.row}>
          <button type="submit" data-look="plain">
            Filter
          </button>
          {search !== "" && (
            <button type="button" onClick={() => navigate(hereWith(""))}>
              Clear
            </button>
          )}
        </div>
      </form>
    </search>
  );
  if (!isNarrow) return form;
  return (
    <details open={search !== ""} className={common.fold}>
      <summary>Filters</summary>
      {form}
    </details>
  );
}

/** The filters that are times. */
const TIMES: ReadonlySet<string> = new Set(["after", "before"]);

/**
 * Returns the filters of the address; a name that it does not have is "". A time that depends on the present, such as
 * `after=48h`, is replaced in the address by the time itself: otherwise each drawing would be another list.
 */
export function useFilters<Name extends string>(names: readonly Name[]): Readonly<Record<Name, string>> {
  const search = useQueryText();
  const [, navigate] = useLocation();
  const fixed = useMemo(() => fixTimes(search), [search]);
  useEffect(() => {
    if (fixed !== search) navigate(hereWith(`?${fixed}`), { replace: true });
  }, [fixed, search, navigate]);
  const parameters = new URLSearchParams(fixed);
  return Object.fromEntries(names.map((name) => [name, parameters.get(name) ?? ""])) as Record<Name, string>;
}

function fixTimes(search: string): string {
  const parameters = new URLSearchParams(search);
  const now = new Date();
  const changes = [...parameters]
    .filter(([name]) => TIMES.has(name))
    .map(([name, value]) => [name, fixMoment(value, now)] as const)
    .filter(([name, value]) => value !== parameters.get(name));
  for (const [name, value] of changes) parameters.set(name, value);
  return changes.length === 0 ? search : parameters.toString();
}

interface TimeFieldProps {
  readonly label: string;
  /** The parameter of the address, which gets the time in RFC 3339. */
  readonly name: string;
  /** From `useFilters()`. */
  readonly value: string;
}

/**
 * A time in a FilterBar, typed as a duration ago or as a date. The address gets the time itself, so that a shared list is
 * the same list, and that its page tokens stay valid.
 */
export function TimeField({ label, name, value }: TimeFieldProps) {
  const [text, setText] = useState(() => shownMoment(value));
  const at = parseMoment(text, new Date());
  const problem = text.trim() === "" || at !== undefined ? undefined : "Such as 24h, or 2026-11-23 18:00.";
  return (
    <>
      <TextField
        label={label}
        problem={problem}
        placeholder="24h ago, or a date"
        value={text}
        onChange={(event) => setText(event.target.value)}
        maxLength={40}
      />
      <input type="hidden" name={name} value={at?.toISOString() ?? ""} />
    </>
  );
}

/** Returns the time of a filter, for a request; undefined without one. A malformed one in the address is skipped. */
export function timestampOf(filter: string): Timestamp | undefined {
  const at = parseMoment(filter, new Date());
  return at === undefined ? undefined : timestampFromDate(at);
}

function shownMoment(filter: string): string {
  const at = parseMoment(filter, new Date());
  return at === undefined ? filter : writeMoment(at);
}

/**
 * The namespace in a FilterBar, as the parameter `namespace`; `value` is from `useNamespace`. A session that is limited to
 * namespaces chooses one of them, because it may not list those of the whole tenant.
 */
export function NamespaceField({ value }: { readonly value: string }) {
  const { namespaces } = useSession();
  const [typed, setTyped] = useState("");
  const listId = useId();
  const { names } = useNamespaceNames(typed);
  if (namespaces.length === 0) {
    return (
      <>
        <TextField
          label="Namespace"
          name="namespace"
          placeholder="all"
          defaultValue={value}
          maxLength={63}
          list={listId}
          onChange={({ target }) => setTyped(target.value)}
        />
        <datalist id={listId}>
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </>
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
